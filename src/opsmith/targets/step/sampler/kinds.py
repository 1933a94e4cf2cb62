"""Interned stream types: what does a shape primitive make of this type, in under a microsecond?

The sampler asks millions of times, so a type is one `Kind` object per structure, its dims are small numbers, and every
inference is remembered on it. The rules are those of `ops` for the six shape primitives; a test holds them equal.
A dim that a program inserted (by Promote or Repeat) carries `TAG`: the same size, but its data does not vary along it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opsmith.targets.step.language.dims import Dim, DimError, literal
from opsmith.targets.step.language.types import Buffer, Multihot, Scalar, StreamType, fields_of, tuple_of

TAG = 1 << 20
ONE = 0  # the number of the literal dim 1
Dims = tuple[int, ...]
Fields = tuple[tuple[int, Dims], ...]  # per field: number of its scalar or Multihot, its Buffer's dims
Step = tuple[Any, ...]  # a shape primitive and its arguments, e.g. ("Repeat", 3) or ("Flatten", 1, 2)


class Kind:
    """One stream type. Equal kinds are the same object."""

    __slots__ = ("dims", "fields", "known")
    fields: Fields
    dims: Dims
    known: dict[Step, Kind | None]

    def __init__(self, fields: Fields, dims: Dims) -> None:
        self.fields, self.dims, self.known = fields, dims, {}


class Kinds:
    """The kinds over one task's sizes, and the inference of the shape primitives on them."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._dims: list[Dim] = [literal(1)]
        self._numbers: dict[Dim, int] = {literal(1): ONE}
        self._elems: list[Scalar | Multihot] = []
        self._elem_numbers: dict[Scalar | Multihot, int] = {}
        self._kinds: dict[tuple[Fields, Dims], Kind] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._quotients: dict[tuple[int, int], int | None] = {}

    # ---------------------------------------------------------------- numbers
    def number(self, dim: Dim) -> int:
        """The number of a dim."""
        found = self._numbers.get(dim)
        if found is None:
            found = self._numbers[dim] = len(self._dims)
            self._dims.append(dim)
        return found

    def dim(self, number: int) -> Dim:
        return self._dims[number & ~TAG]

    def elem(self, elem: Scalar | Multihot) -> int:
        """The number of a scalar or Multihot type."""
        found = self._elem_numbers.get(elem)
        if found is None:
            found = self._elem_numbers[elem] = len(self._elems)
            self._elems.append(elem)
        return found

    def multihot(self, fields: Fields) -> Multihot | None:
        """The Multihot type that `fields` is, if it is one."""
        elem = self._elems[fields[0][0]]
        return elem if len(fields) == 1 and not fields[0][1] and isinstance(elem, Multihot) else None

    def fields(self, dtype: Any) -> Fields:
        """A dtype's fields as numbers."""
        return tuple(self._field(field) for field in fields_of(dtype))

    def _field(self, field: Scalar | Multihot | Buffer) -> tuple[int, Dims]:
        if isinstance(field, Buffer):
            return self.elem(field.elem), tuple(self.number(dim) for dim in field.dims)
        return self.elem(field), ()

    def make(self, fields: Fields, dims: Dims) -> Kind:
        """The kind of that structure."""
        found = self._kinds.get((fields, dims))
        if found is None:
            found = self._kinds[fields, dims] = Kind(fields, dims)
        return found

    def of(self, stream: StreamType) -> Kind:
        """The kind of a stream type."""
        return self.make(self.fields(stream.dtype), tuple(self.number(dim) for dim in stream.dims))

    def stream_type(self, kind: Kind) -> StreamType:
        """The inverse of `of`, without tags."""
        fields = [
            Buffer(self._elems[elem], tuple(map(self.dim, dims))) if dims else self._elems[elem]
            for elem, dims in kind.fields
        ]
        return StreamType(tuple_of(fields), tuple(map(self.dim, kind.dims)))

    # ---------------------------------------------------------------- inference
    def infer(self, kind: Kind, step: Step) -> Kind | None:
        """The kind after one shape primitive; None where its rule forbids it."""
        try:
            return kind.known[step]
        except KeyError:
            found: Kind | None = _RULES[step[0]](self, kind, *step[1:])
            kind.known[step] = found
            return found

    def _bufferize(self, kind: Kind, a: int) -> Kind | None:
        if not 1 <= a < len(kind.dims):
            return None
        inner = kind.dims[:a]
        return self.make(tuple((elem, dims + inner) for elem, dims in kind.fields), kind.dims[a:])

    def _streamify(self, kind: Kind) -> Kind | None:
        inner = kind.fields[0][1]
        if not inner or any(dims != inner for _, dims in kind.fields):
            return None
        return self.make(tuple((elem, ()) for elem, _ in kind.fields), inner + kind.dims)

    def _promote(self, kind: Kind, b: int) -> Kind | None:
        if not 0 <= b <= len(kind.dims):
            return None
        return self.make(kind.fields, (*kind.dims[:b], ONE | TAG, *kind.dims[b:]))

    def _repeat(self, kind: Kind, n: int) -> Kind:
        return self.make(kind.fields, (n | TAG, *kind.dims))

    def _flatten(self, kind: Kind, first: int, last: int) -> Kind | None:
        if not 1 <= first <= last < len(kind.dims):
            return None
        merged = self.product(kind.dims[first - 1 : last + 1])
        return self.make(kind.fields, (*kind.dims[: first - 1], merged, *kind.dims[last + 1 :]))

    def _reshape(self, kind: Kind, size: int, at: int) -> Kind | None:
        if not 0 <= at < len(kind.dims):
            return None
        rest = self.quotient(kind.dims[at], size)
        tag = kind.dims[at] & TAG
        return (
            None
            if rest is None
            else self.make(kind.fields, (*kind.dims[:at], size | tag, rest | tag, *kind.dims[at + 1 :]))
        )

    def product(self, dims: Iterable[int]) -> int:
        """The product; tagged only where every factor other than 1 is."""
        result = ONE | TAG
        for dim in dims:
            tag = TAG
            for factor in (result, dim):
                if factor & ~TAG != ONE:
                    tag &= factor
            if (result | dim) & ~TAG == ONE:
                tag = result & dim & TAG
            result = self._product(result & ~TAG, dim & ~TAG) | tag
        return result

    def _product(self, left: int, right: int) -> int:
        found = self._products.get((left, right))
        if found is None:
            found = self._products[left, right] = self.number(self._dims[left] * self._dims[right])
        return found

    def quotient(self, dim: int, size: int) -> int | None:
        """The whole quotient of two dims at the task's sizes, untagged; None where the sizes do not divide."""
        key = (dim & ~TAG, size & ~TAG)
        if key not in self._quotients:
            self._quotients[key] = self._divide(*map(self.dim, key))
        return self._quotients[key]

    def _divide(self, dim: Dim, size: Dim) -> int | None:
        try:
            if dim.value(self.sizes) % size.value(self.sizes):
                return None
            return self.number(dim / size)
        except DimError:
            return None


_RULES: dict[str, Any] = {
    "Bufferize": Kinds._bufferize,
    "Streamify": Kinds._streamify,
    "Promote": Kinds._promote,
    "Repeat": Kinds._repeat,
    "Flatten": Kinds._flatten,
    "Reshape": Kinds._reshape,
}


def untagged(dims: Dims) -> Dims:
    return tuple(dim & ~TAG for dim in dims)


def tags(dims: Dims) -> int:
    """One bit per inserted dim, bit 0 the innermost."""
    return sum(1 << place for place, dim in enumerate(dims) if dim & TAG)
