"""Dims: the size of an axis as a symbolic monomial.

A dim is a positive rational number times symbols with non-zero integer exponents, kept in normal form, so that two dims
are equal exactly when they are equal for every size of the symbols. Equality never looks at sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

MAX_DEGREE = 64  # of a monomial; a longer product is no axis of any tensor
MAX_COEFFICIENT = 2**62

_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*)|(//|[*/()]))")


class DimError(ValueError):
    """A dim that cannot be read, is too large, or has no whole value; `str(error)` says which."""


class Dim:
    """One immutable monomial, e.g. `2*M*N/K`. Multiply and divide with dims and ints.

    >>> parse_dim("N*K") == parse_dim("K*N"), parse_dim("4*(D/4)") == parse_dim("D"), parse_dim("5") == parse_dim("M")
    (True, True, False)
    """

    __slots__ = ("_hash", "coefficient", "is_dynamic", "powers")
    coefficient: Fraction
    powers: tuple[tuple[str, int], ...]  # (symbol, exponent), sorted by symbol
    is_dynamic: bool  # known only at run time: the dim mentions a symbol that a Partition made
    _hash: int

    def __init__(self, coefficient: Fraction | int, powers: tuple[tuple[str, int], ...] = ()) -> None:
        self.coefficient = Fraction(coefficient)
        self.powers = powers
        self._hash = hash((self.coefficient, powers))
        self.is_dynamic = any(name.startswith("?") for name, _ in powers)
        self._check_size()

    def _check_size(self) -> None:
        top, bottom = self.coefficient.numerator, self.coefficient.denominator
        if top <= 0:
            raise DimError(f"a dim is positive, got {top}")
        if max(top, bottom) > MAX_COEFFICIENT or sum(abs(power) for _, power in self.powers) > MAX_DEGREE:
            raise DimError(f"a dim of more than {MAX_DEGREE} factors or {MAX_COEFFICIENT} elements")

    def __eq__(self, value: object) -> bool:
        if self is value:
            return True
        if not isinstance(value, Dim):
            return NotImplemented
        return self._hash == value._hash and self.powers == value.powers and self.coefficient == value.coefficient

    def __hash__(self) -> int:
        return self._hash

    def __mul__(self, factor: Dim | int) -> Dim:
        return _multiply_powers(self, as_dim(factor), 1)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Dim | int) -> Dim:
        return _multiply_powers(self, as_dim(divisor), -1)

    __floordiv__ = __truediv__

    def __rtruediv__(self, dividend: Dim | int) -> Dim:
        return _multiply_powers(as_dim(dividend), self, -1)

    __rfloordiv__ = __rtruediv__

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for symbol, _ in self.powers)

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number of elements at these sizes. Raises DimError when a size is missing or the result is not whole."""
        top, bottom = self.coefficient.numerator, self.coefficient.denominator
        for name, power in self.powers:
            if name not in sizes:
                raise DimError(f"{self} has no value: the size of {name} is not known")
            if power > 0:
                top *= sizes[name] ** power
            else:
                bottom *= sizes[name] ** -power
        if bottom == 0 or top % bottom:
            sizes_text = ", ".join(f"{name} = {sizes[name]}" for name, _ in self.powers)
            raise DimError(f"{self} is not an integer: {sizes_text}")
        return top // bottom

    def __str__(self) -> str:
        top = [str(self.coefficient.numerator)] if self.coefficient.numerator != 1 else []
        top += [symbol for symbol, power in self.powers for _ in range(power)]
        bottom = [str(self.coefficient.denominator)] if self.coefficient.denominator != 1 else []
        bottom += [symbol for symbol, power in self.powers for _ in range(-power)]
        return "/".join(["*".join(top) or "1", *bottom])

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Dim, (self.coefficient, self.powers))


@lru_cache(maxsize=4096)
def _multiply_powers(first: Dim, second: Dim, sign: int) -> Dim:
    powers = dict(first.powers)
    for symbol, power in second.powers:
        powers[symbol] = powers.get(symbol, 0) + sign * power
    nonzero = tuple(sorted((symbol, power) for symbol, power in powers.items() if power))
    return Dim(first.coefficient * second.coefficient**sign, nonzero)


@lru_cache(maxsize=1024)
def make_symbol(name: str) -> Dim:
    """The dim that is this symbol; Partition's dynamic symbols look like `?0.1`."""
    return Dim(1, ((name, 1),))


@lru_cache(maxsize=1024)
def make_literal(number: int) -> Dim:
    """The dim that is this number."""
    return Dim(number)


def as_dim(value: Dim | int | str) -> Dim:
    """A dim from a dim, an int or a text. Raises DimError."""
    if isinstance(value, Dim):
        return value
    return make_literal(value) if isinstance(value, int) else parse_dim(value)


@lru_cache(maxsize=4096)
def parse_dim(text: str) -> Dim:
    """A written dim: `factor (("*" | "/" | "//") factor)*`, factor = INT | SYMBOL | "(" dim ")". Raises DimError."""
    tokens = _split_tokens(text)
    dim, tail = _parse_product(text, tokens)
    if tail:
        raise DimError(f"cannot read the dim {text!r}: {tail[0]!r} is out of place")
    return dim


def _split_tokens(text: str) -> list[str]:
    tokens, start = [], 0
    stripped = text.rstrip()
    if len(stripped) > 200:
        raise DimError(f"a dim of {len(stripped)} characters")
    while start < len(stripped):
        match = _TOKEN.match(stripped, start)
        if match is None:
            raise DimError(
                f"cannot read the dim {text!r} at {stripped[start:]!r}; dims are built from ints, symbols, * and /"
            )
        tokens.append(match[1] or match[2] or match[3])
        start = match.end()
    return tokens


def _parse_product(text: str, tokens: list[str]) -> tuple[Dim, list[str]]:
    dim, tail = _parse_factor(text, tokens)
    while tail and tail[0] in ("*", "/", "//"):
        factor, after = _parse_factor(text, tail[1:])
        dim, tail = (dim * factor if tail[0] == "*" else dim / factor), after
    return dim, tail


def _parse_factor(text: str, tokens: list[str]) -> tuple[Dim, list[str]]:
    if not tokens or tokens[0] in ("*", "/", "//", ")"):
        raise DimError(f"cannot read the dim {text!r}: a number or symbol is missing")
    if tokens[0] == "(":
        dim, tail = _parse_product(text, tokens[1:])
        if not tail or tail[0] != ")":
            raise DimError(f"cannot read the dim {text!r}: a bracket is not closed")
        return dim, tail[1:]
    head = tokens[0]
    return (make_literal(int(head)) if head[0].isdigit() else make_symbol(head)), tokens[1:]
