"""Stream types in small numbers, and what a shape primitive makes of one in about a microsecond.

The sampler asks millions of times, so a type is a pair of tuples of small numbers, and nothing is kept of one that is
not asked for again. The rules are those of `ops` for the six shape primitives; a test holds them equal.
A dim that a program inserted (by Promote or Repeat) carries `TAG`: the same size, but its data does not vary along it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from opsmith.problems.dims import Dim, DimError, make_literal
from opsmith.targets.step.language.types import Buffer, Multihot, Scalar, StreamType, fields_of, tuple_of

TAG = 1 << 20
ONE = 0  # the number of the literal dim 1
NUMBER_BYTES = 250  # of a dim, or of what two dims make
BEYOND = TAG - 1  # stands for every product that is too large to be a dim
Dims = tuple[int, ...]
Fields = tuple[tuple[int, Dims], ...]  # per field: number of its scalar or Multihot, its Buffer's dims
Step = tuple[Any, ...]  # a shape primitive and its arguments, e.g. ("Repeat", 3) or ("Flatten", 1, 2)


class StreamKind(NamedTuple):
    """One stream type."""

    fields: Fields
    dims: Dims


class Kinds:
    """The kinds over one task's sizes, and the inference of the shape primitives on them."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._dims: list[Dim] = [make_literal(1)]
        self._numbers: dict[Dim, int] = {make_literal(1): ONE}
        self._elems: list[Scalar | Multihot] = []
        self._elem_numbers: dict[Scalar | Multihot, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._quotients: dict[tuple[int, int], int | None] = {}

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return NUMBER_BYTES * (len(self._dims) + len(self._products) + len(self._quotients))

    # ---------------------------------------------------------------- numbers
    def encode_dim(self, dim: Dim) -> int:
        """The number of a dim."""
        number = self._numbers.get(dim)
        if number is None:
            number = self._numbers[dim] = len(self._dims)
            self._dims.append(dim)
        return number

    def decode_dim(self, number: int) -> Dim:
        return self._dims[number & ~TAG]

    def encode_elem(self, elem: Scalar | Multihot) -> int:
        """The number of a scalar or Multihot type."""
        number = self._elem_numbers.get(elem)
        if number is None:
            number = self._elem_numbers[elem] = len(self._elems)
            self._elems.append(elem)
        return number

    def decode_multihot(self, fields: Fields) -> Multihot | None:
        """The Multihot type that `fields` is, if it is one."""
        elem = self._elems[fields[0][0]]
        return elem if len(fields) == 1 and not fields[0][1] and isinstance(elem, Multihot) else None

    def encode_fields(self, dtype: Any) -> Fields:
        """A dtype's fields as numbers."""
        return tuple(self._encode_field(field) for field in fields_of(dtype))

    def _encode_field(self, field: Scalar | Multihot | Buffer) -> tuple[int, Dims]:
        if isinstance(field, Buffer):
            return self.encode_elem(field.elem), tuple(self.encode_dim(dim) for dim in field.dims)
        return self.encode_elem(field), ()

    def encode_stream(self, stream: StreamType) -> StreamKind:
        """The kind of a stream type."""
        return StreamKind(self.encode_fields(stream.dtype), tuple(self.encode_dim(dim) for dim in stream.dims))

    def decode_stream(self, kind: StreamKind) -> StreamType:
        """The inverse of `encode_stream`, without tags."""
        fields = [
            Buffer(self._elems[elem], tuple(map(self.decode_dim, dims))) if dims else self._elems[elem]
            for elem, dims in kind.fields
        ]
        return StreamType(tuple_of(fields), tuple(map(self.decode_dim, kind.dims)))

    # ---------------------------------------------------------------- inference
    def infer_kind(self, kind: StreamKind, step: Step) -> StreamKind | None:
        """The kind after one shape primitive; None where its rule forbids it."""
        inferred: StreamKind | None = _RULES[step[0]](self, kind, *step[1:])
        return inferred

    def _infer_bufferize(self, kind: StreamKind, a: int) -> StreamKind | None:
        if not 1 <= a < len(kind.dims):
            return None
        inner = kind.dims[:a]
        return StreamKind(tuple((elem, dims + inner) for elem, dims in kind.fields), kind.dims[a:])

    def _infer_streamify(self, kind: StreamKind) -> StreamKind | None:
        inner = kind.fields[0][1]
        if not inner or any(dims != inner for _, dims in kind.fields):
            return None
        return StreamKind(tuple((elem, ()) for elem, _ in kind.fields), inner + kind.dims)

    def _infer_promote(self, kind: StreamKind, b: int) -> StreamKind | None:
        if not 0 <= b <= len(kind.dims):
            return None
        return StreamKind(kind.fields, (*kind.dims[:b], ONE | TAG, *kind.dims[b:]))

    def _infer_repeat(self, kind: StreamKind, n: int) -> StreamKind:
        return StreamKind(kind.fields, (n | TAG, *kind.dims))

    def _infer_flatten(self, kind: StreamKind, first: int, last: int) -> StreamKind | None:
        if not 1 <= first <= last < len(kind.dims):
            return None
        merged = self.tagged_product(kind.dims[first - 1 : last + 1])
        return StreamKind(kind.fields, (*kind.dims[: first - 1], merged, *kind.dims[last + 1 :]))

    def _infer_reshape(self, kind: StreamKind, size: int, axis: int) -> StreamKind | None:
        if not 0 <= axis < len(kind.dims):
            return None
        quotient = self.divide_exactly(kind.dims[axis], size)
        tag = kind.dims[axis] & TAG
        return (
            None
            if quotient is None
            else StreamKind(kind.fields, (*kind.dims[:axis], size | tag, quotient | tag, *kind.dims[axis + 1 :]))
        )

    def tagged_product(self, dims: Iterable[int]) -> int:
        """The product; tagged only where every factor other than 1 is."""
        result = ONE | TAG
        for dim in dims:
            tag = TAG
            for factor in (result, dim):
                if factor & ~TAG != ONE:
                    tag &= factor
            if (result | dim) & ~TAG == ONE:
                tag = result & dim & TAG
            result = self.multiply_dims(result & ~TAG, dim & ~TAG) | tag
        return result

    def count_elements(self, dims: Iterable[int]) -> int:
        """The product of untagged dims."""
        return reduce(self.multiply_dims, dims, ONE)

    def multiply_dims(self, dim: int, factor: int) -> int:
        """The product of two untagged dims; `BEYOND` where it is no dim."""
        product = self._products.get((dim, factor))
        if product is None:
            product = self._products[dim, factor] = self._encode_result(operator.mul, dim, factor)
        return product

    def divide_dims(self, dim: int, divisor: int) -> int:
        """The quotient of two untagged dims at any sizes, whole or not; `BEYOND` where it is no dim."""
        return self._encode_result(operator.truediv, dim, divisor)

    def _encode_result(self, compute: Callable[[Dim, Dim], Dim], first: int, second: int) -> int:
        if BEYOND in (first, second):
            return BEYOND
        try:
            return self.encode_dim(compute(self._dims[first], self._dims[second]))
        except DimError:
            return BEYOND

    def divide_exactly(self, dim: int, size: int) -> int | None:
        """The quotient of two dims, untagged; None where the task's sizes do not divide."""
        key = (dim & ~TAG, size & ~TAG)
        if key not in self._quotients:
            self._quotients[key] = self._divide_at_sizes(*map(self.decode_dim, key))
        return self._quotients[key]

    def _divide_at_sizes(self, dim: Dim, size: Dim) -> int | None:
        try:
            if dim.value(self.sizes) % size.value(self.sizes):
                return None
            return self.encode_dim(dim / size)
        except DimError:
            return None


_RULES: dict[str, Any] = {
    "Bufferize": Kinds._infer_bufferize,
    "Streamify": Kinds._infer_streamify,
    "Promote": Kinds._infer_promote,
    "Repeat": Kinds._infer_repeat,
    "Flatten": Kinds._infer_flatten,
    "Reshape": Kinds._infer_reshape,
}


def remove_tags(dims: Dims) -> Dims:
    return tuple([dim & ~TAG for dim in dims])  # faster than from a generator, and asked millions of times


def tag_mask(dims: Dims) -> int:
    """One bit per inserted dim, bit 0 the innermost."""
    return sum(1 << place for place, dim in enumerate(dims) if dim & TAG)
