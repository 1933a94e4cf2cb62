"""Dims and sizes in plain Python: `D` is a symbol, `D_value` a number that remembers its symbol.

Author's code uses `D_value` as a number, programs use it where a dim is expected; both work on the same object.
"""

from __future__ import annotations

from typing import Any

from opsmith.problems import dims as core


class SizedDim(core.Dim):
    """A symbol, or a product or quotient of symbols and ints; hashable, so that it can be a key of `ctx`.

    A symbol that was given a size is a number where Python needs one: `range(Dim("E", 3))`.

    >>> E = SizedDim("E", 3)
    >>> [i for i in range(E)], E * 2 / E == SizedDim("E") / E * 2, str(E * E)
    ([0, 1, 2], True, 'E*E')
    """

    __slots__ = ("size",)
    size: int | None

    def __init__(self, name: str, size: int | None = None) -> None:
        super().__init__(1, core.parse_dim(name).powers)
        self.size = None if size is None else int(size)

    @classmethod
    def _of(cls, dim: core.Dim) -> SizedDim:
        sized = cls.__new__(cls)
        core.Dim.__init__(sized, dim.coefficient, dim.powers)
        sized.size = None
        return sized

    def __index__(self) -> int:
        if self.size is None:
            raise TypeError(f"the dim {self} has no size; give one: step.Dim({str(self)!r}, 4)")
        return self.size

    def __mul__(self, other: Any) -> Any:
        return SizedDim._of(plain_dim(self) * plain_dim(other)) if is_dim(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return SizedDim._of(plain_dim(self) / plain_dim(other)) if is_dim(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return SizedDim._of(plain_dim(other) / plain_dim(self)) if is_dim(other) else NotImplemented

    __rmul__ = __mul__
    __floordiv__ = __truediv__
    __rfloordiv__ = __rtruediv__


class Size(int):
    """The size of a dim: an int that remembers the dim through `*` and exact `/` and `//`, and forgets it otherwise.

    >>> D = SizedDim("D", 16)
    >>> half = Size(D) // 2
    >>> half + 1, str(half.dim), Size(D) * 0.5
    (9, 'D/2', 8.0)
    """

    dim: core.Dim

    def __new__(cls, dim: core.Dim, value: int | None = None) -> Size:
        size = super().__new__(cls, dim.__index__() if value is None and isinstance(dim, SizedDim) else value or 0)
        size.dim = plain_dim(dim)
        return size

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, core.Dim):
            return SizedDim._of(self.dim) * other
        return _multiply_size(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return SizedDim._of(self.dim) / other if isinstance(other, core.Dim) else _divide_size(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divide_size(other, self)

    def __truediv__(self, other: Any) -> Any:
        return SizedDim._of(self.dim) / other if isinstance(other, core.Dim) else _divide_exactly(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divide_exactly(other, self)

    def __reduce__(self) -> Any:
        return (Size, (self.dim, int(self)))


class Quotient(float):
    """`D_value / 2`: a float, as in Python, that remembers its dim where the division is exact."""

    dim: core.Dim

    @classmethod
    def of(cls, value: float, dim: core.Dim) -> Quotient:
        quotient = cls(value)
        quotient.dim = dim
        return quotient

    def __index__(self) -> int:
        return int(self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, core.Dim):
            return SizedDim._of(self.dim) * other
        exact = (isinstance(other, Size | Quotient) or type(other) is int) and other >= 1
        product = float(self) * other if isinstance(other, int | float) else NotImplemented
        return Quotient.of(product, self.dim * plain_dim(other)) if exact else product

    __rmul__ = __mul__


def plain_dim(value: Any) -> core.Dim:
    """The dim behind a Dim, Size, Quotient or int. Raises DimError, or TypeError for anything else."""
    if isinstance(value, core.Dim):
        return core.Dim(value.coefficient, value.powers)
    if isinstance(value, Size | Quotient):
        return value.dim
    if isinstance(value, int):
        return core.make_literal(value)
    if isinstance(value, str):
        return core.parse_dim(value)
    raise TypeError(f"given {value!r}; expected a dim: a symbol, a product of symbols or an int >= 1")


def is_dim(value: Any) -> bool:
    return isinstance(value, core.Dim | Size | Quotient | int)


def _multiply_size(size: Size, other: Any) -> Any:
    if not isinstance(other, int):
        return NotImplemented
    product = int(size) * int(other)
    return Size(size.dim * plain_dim(other), product) if product >= 1 else product


def _divide_size(left: Any, right: Any) -> Any:
    """`//`: a Size where the division is exact, else an int."""
    if not (isinstance(left, int) and isinstance(right, int)):
        return NotImplemented
    quotient, remainder = divmod(int(left), int(right))
    return quotient if remainder or quotient < 1 or right < 1 else Size(plain_dim(left) / plain_dim(right), quotient)


def _divide_exactly(left: Any, right: Any) -> Any:
    """`/`: a float, which remembers its dim where the division is exact."""
    if not (isinstance(left, int) and isinstance(right, int)):
        return NotImplemented
    quotient = int(left) / int(right)
    exact = left >= 1 and right >= 1 and int(left) % int(right) == 0
    return Quotient.of(quotient, plain_dim(left) / plain_dim(right)) if exact else quotient
