"""Types: what one element of a stream looks like, and what shape the stream has.

Types are immutable and compared by structure: `Buffer(fp32, [M, N]) != Buffer(fp32, [N, M])`. Dims are listed innermost
first. A tuple of one field is that field; tuples and Buffers do not nest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.problems.dims import Dim, DimError, as_dim, parse_dim
from opsmith.problems.dtypes import STREAM_DTYPES


class StepTypeError(ValueError):
    """A type that cannot be written: the message says what was given, what was expected and what to try."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; its tensor shape per element is ()."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Multihot:
    """A 0/1 vector of `length` entries; shape per element (length,)."""

    scalar: Scalar
    length: Dim

    def __str__(self) -> str:
        return f"Multihot({self.scalar}, {self.length})"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A block of scalars or Multihots; `dims` innermost first, shape per element reversed(dims) ++ shape of `elem`."""

    elem: Scalar | Multihot
    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"Buffer({self.elem}, [{', '.join(map(str, self.dims))}])"


@dataclass(frozen=True, slots=True)
class Tuple:
    """Two or more fields, none of which is a tuple."""

    fields: tuple[Scalar | Multihot | Buffer, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.fields))}]"


Field = Scalar | Multihot | Buffer
DType = Field | Tuple

FP32 = Scalar("fp32")


@dataclass(frozen=True, slots=True)
class StreamType:
    """`St<dtype, dims>`: dims innermost first, at least one. The data is one tensor per field (see `tensor_shape`).

    >>> print(parse_stream("Buffer(fp32, [D]) [M, N]"))
    Buffer(fp32, [D]) [M, N]
    """

    dtype: DType
    dims: tuple[Dim, ...]
    _hash: int = field(init=False, repr=False, compare=False)  # the type rules are looked up by type

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.dtype, self.dims)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return (StreamType, (self.dtype, self.dims))  # texts hash otherwise in another process

    @property
    def rank(self) -> int:
        """One less than the number of dims: the outermost dim has no stop token of its own."""
        return len(self.dims) - 1

    def __str__(self) -> str:
        return f"{self.dtype} {dims_text(self.dims)}"


def dims_text(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def fields_of(dtype: DType) -> tuple[Field, ...]:
    """A tuple's fields, or the type itself as the only one."""
    return dtype.fields if isinstance(dtype, Tuple) else (dtype,)


def tuple_of(fields: Sequence[Field]) -> DType:
    """The type with these fields; one field is that field."""
    return fields[0] if len(fields) == 1 else Tuple(tuple(fields))


def scalar_of(field: Field) -> Scalar:
    """The number type at the bottom of a field."""
    inner = field.elem if isinstance(field, Buffer) else field
    return inner.scalar if isinstance(inner, Multihot) else inner


def element_dims(field: Field) -> tuple[Dim, ...]:
    """The element axes of a field, outermost first: reversed(buffer dims) ++ [multihot length]."""
    if isinstance(field, Scalar):
        return ()
    if isinstance(field, Multihot):
        return (field.length,)
    return (*reversed(field.dims), *element_dims(field.elem))


def inner_dims(dtype: DType) -> tuple[Dim, ...]:
    """The element axes of all fields."""
    return tuple(dim for field in fields_of(dtype) for dim in element_dims(field))


def array_shape(field: Field, dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape of a whole stream's tensor in symbols, outermost first."""
    return (*reversed(dims), *element_dims(field))


def element_shape(field: Field, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The tensor shape of one element. Raises DimError where a dim has no whole value."""
    return tuple(dim.value(sizes) for dim in element_dims(field))


def tensor_shape(field: Field, dims: Sequence[Dim], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The tensor shape of a whole stream: reversed(dims) ++ layout(field)."""
    return tuple(dim.value(sizes) for dim in reversed(dims)) + element_shape(field, sizes)


def multihot_of(field: Field) -> Multihot | None:
    """The Multihot that a field is or holds."""
    inner = field.elem if isinstance(field, Buffer) else field
    return inner if isinstance(inner, Multihot) else None


def parse_dims(written: Any) -> tuple[Dim, ...]:
    """A YAML list of ints and strings. Raises StepTypeError with the place in words."""
    if not isinstance(written, (list, tuple)):
        raise StepTypeError(f"given {written!r}; expected a list of dims, innermost first; try: [{written}]")
    if not written:
        raise StepTypeError("given an empty list; expected at least one dim; try: [1]")
    return tuple(_parse_entry(entry) for entry in written)


def _parse_entry(entry: Any) -> Dim:
    if isinstance(entry, bool) or entry is None or not isinstance(entry, (int, str)):
        raise StepTypeError(f"given {entry!r} as a dim (YAML read it so); expected an int or a symbol; try: quote it")
    try:
        return as_dim(entry)
    except DimError as error:
        raise StepTypeError(f"given {entry!r}; expected a dim such as 4, N, M*N or D/2: {error}") from None


def parse_type(written: Any) -> DType:
    """A dtype as written: a string, or a list of strings for a tuple. Raises StepTypeError.

    >>> print(parse_type(["fp32", "Buffer(fp32,[D,K])"]))
    [fp32, Buffer(fp32, [D, K])]
    """
    if isinstance(written, (list, tuple)):
        if not written:
            raise StepTypeError("given an empty list; expected at least one type")
        fields = [_parse_field(entry) for entry in written]
        return tuple_of(fields)
    if isinstance(written, str) and written.strip().startswith("["):
        inner = written.strip()
        if not inner.endswith("]"):
            raise StepTypeError(f"given {written!r}; expected a closing bracket")
        return tuple_of([_parse_field(field) for field in _split_list(inner[1:-1])])
    return _parse_field(written)


@lru_cache(maxsize=1024)
def _parse_text(text: str) -> Field:
    bare = text.strip()
    if bare in STREAM_DTYPES:
        return Scalar(bare)
    match = re.fullmatch(r"(Buffer|Multihot)\s*\((.*)\)", bare, re.S)
    if match is None:
        names = ", ".join(STREAM_DTYPES)
        raise StepTypeError(f"given {text!r}; expected one of {names}, Buffer(TYPE, [DIMS]) or Multihot(TYPE, LENGTH)")
    arguments = _split_list(match[2])
    if len(arguments) != 2:
        raise StepTypeError(f"given {text!r}; expected two arguments; try: Buffer(fp32, [D]) or Multihot(fp32, E)")
    return _parse_buffer(text, *arguments) if match[1] == "Buffer" else _parse_multihot(text, *arguments)


def _parse_field(written: Any) -> Field:
    if not isinstance(written, str):
        raise StepTypeError(f"given {written!r}; expected a type as text; inside [ ] quote types with brackets")
    if len(written) > 500:
        raise StepTypeError(f"given a type of {len(written)} characters; expected at most 500")
    return _parse_text(written)


def _parse_buffer(text: str, elem_text: str, dims: str) -> Buffer:
    elem = _parse_text(elem_text)
    if isinstance(elem, Buffer):
        raise StepTypeError(f"given {text!r}; expected no Buffer in a Buffer; try: Buffer(fp32, [D, K])")
    if not (dims.startswith("[") and dims.endswith("]")):
        raise StepTypeError(f"given {text!r}; expected dims in brackets; try: Buffer({elem_text}, [{dims}])")
    entries = _split_list(dims[1:-1])
    if not entries:
        raise StepTypeError(f"given {text!r}; expected at least one dim")
    return Buffer(elem, tuple(_parse_entry(entry) for entry in entries))


def _parse_multihot(text: str, scalar_text: str, length: str) -> Multihot:
    scalar = _parse_text(scalar_text)
    if not isinstance(scalar, Scalar):
        raise StepTypeError(f"given {text!r}; expected a number type first; try: Multihot(fp32, E)")
    try:
        return Multihot(scalar, parse_dim(length))
    except DimError as error:
        raise StepTypeError(f"given {text!r}; expected a length: {error}") from None


def _split_list(text: str) -> list[str]:
    """The parts between the commas that lie outside of brackets."""
    entries, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            entries.append(text[start:position].strip())
            start = position + 1
    entries.append(text[start:].strip())
    return [entry for entry in entries if entry]


def parse_stream(text: str) -> StreamType:
    """The printed form back: `TYPE [DIMS]`."""
    head, _, dims = text.strip().rpartition(" [")
    return StreamType(parse_type(head), parse_dims(_split_list(dims.rstrip("]"))))
