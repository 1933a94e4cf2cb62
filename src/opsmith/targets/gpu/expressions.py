"""The expressions of a launch plan: whole numbers over names, with `+ - * // %`, brackets and four functions.

    cdiv(a, b)     a divided by b, rounded up
    next_pow2(a)   the least power of two that is at least a
    min, max       of two or more

Texts are bounded in length, depth and numbers, so that no text takes long to read or to evaluate. `//` and `%` round
down, as in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

LONGEST = 200  # characters of an expression as it is written
_GROWTH = 3  # of a text that is made canonical, at most
DEEPEST = 20  # brackets within brackets
LARGEST = 2**62  # of a number, written or computed

_TOKEN = re.compile(r"\s*(?:(\d[\w.]*)|([^\W\d]\w*)|(//|\*\*|<<|>>|.))", re.DOTALL)
_RANKS = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}
_ARITIES = {"cdiv": (2, 2), "next_pow2": (1, 1), "min": (2, 8), "max": (2, 8)}  # of functions: least and most
_REMEDIES = {
    "/": "// (rounded down) or cdiv(a, b) (rounded up)",
    "**": "a product",
    "<<": "a product with a power of two",
    ">>": "// with a power of two",
    "&": "%",
    "?": "min or max",
}
_SIMILAR = {"ceil": "cdiv", "ceildiv": "cdiv", "ceil_div": "cdiv", "div_up": "cdiv", "next_power_of_2": "next_pow2"}


class ExpressionError(ValueError):
    """A text that is no expression, or one that has no value: what is wrong where."""

    def __init__(self, actual: str, expected: str, remedy: str = "", place: int = 0) -> None:
        super().__init__(f"given {actual}; expected {expected}")
        self.given, self.expected, self.remedy, self.place = actual, expected, remedy, place


@dataclass(frozen=True)
class Expression:
    """A number, a name, or an operation on others."""

    head: str  # digits, a name, an operator or a function
    operands: tuple[Expression, ...] = ()

    @property
    def names(self) -> Iterator[str]:
        """Those of dims, from left to right, each as often as it stands there."""
        if not self.operands and not self.head.isdigit():
            yield self.head
        for operand in self.operands:
            yield from operand.names

    def __str__(self) -> str:
        """The canonical text: one space around operators, no bracket that is not needed."""
        if self.head in _ARITIES and self.operands:
            return f"{self.head}({', '.join(map(str, self.operands))})"
        if not self.operands:
            return self.head
        if len(self.operands) == 1:
            return f"{self.head}{_enclose(self.operands[0], 3)}"
        first, second = self.operands
        rank = _RANKS[self.head]
        return f"{_enclose(first, rank)} {self.head} {_enclose(second, rank + 1)}"


def _enclose(operand: Expression, rank: int) -> str:
    """In brackets where it binds less than `rank`."""
    binds = _RANKS.get(operand.head, 3) if len(operand.operands) == 2 else 3
    return f"({operand})" if binds < rank else str(operand)


# -- reading


@lru_cache(maxsize=1024)
def parse_expression(text: str, longest: int = LONGEST) -> Expression:
    """Raises ExpressionError.

    >>> str(parse_expression("(cdiv(N,256))+2*(M-(1))"))
    'cdiv(N, 256) + 2 * (M - 1)'
    """
    if len(text) > longest:
        raise ExpressionError(f"an expression of {len(text)} characters", f"at most {longest}")
    parser = _Parser(list(_split_tokens(text)), len(text.rstrip()))
    expression = parser.read_sum(0)
    if parser.token:
        raise parser.refuse_token("an operator (+ - * // %) or the end")
    return expression


def parse_canonical(text: str) -> Expression:
    """What `str` of an expression wrote."""
    return parse_expression(text, _GROWTH * LONGEST)


def _split_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Each with its place."""
    for match in _TOKEN.finditer(text.rstrip()):
        yield match[match.lastindex or 0], match.start(match.lastindex or 0)


class _Parser:
    """Reads one expression from left to right."""

    def __init__(self, tokens: list[tuple[str, int]], end: int) -> None:
        self._tokens, self._following, self._end = tokens, 0, end

    @property
    def token(self) -> str:
        """The next one; "": none is left."""
        return self._tokens[self._following][0] if self._following < len(self._tokens) else ""

    @property
    def place(self) -> int:
        return self._tokens[self._following][1] if self._following < len(self._tokens) else self._end

    def read_sum(self, depth: int, rank: int = 1) -> Expression:
        """Operations of a rank, from left to right."""
        if depth > DEEPEST:
            raise ExpressionError(f"more than {DEEPEST} brackets within brackets", "a plain expression")
        first = self._read_ranked(depth, rank)
        while _RANKS.get(self.token) == rank:
            symbol = self._take_token()
            first = Expression(symbol, (first, self._read_ranked(depth, rank)))
        return first

    def _read_ranked(self, depth: int, rank: int) -> Expression:
        return self.read_sum(depth, rank + 1) if rank < 2 else self._read_factor(depth)

    def _read_factor(self, depth: int) -> Expression:
        token = self.token
        if token == "-":
            self._take_token()
            if depth >= DEEPEST:
                raise ExpressionError(f"more than {DEEPEST} brackets within brackets", "a plain expression")
            return Expression("-", (self._read_factor(depth + 1),))
        if token == "(":
            self._take_token()
            inner = self.read_sum(depth + 1)
            self._expect_token(")")
            return inner
        if token[:1].isdigit():
            return Expression(self._read_number())
        if token.isidentifier():
            return self._read_name(depth)
        raise self.refuse_token("a number, a dim, a function or (")

    def _read_number(self) -> str:
        token, place = self.token, self.place
        if not re.fullmatch(r"\d+", token, re.ASCII):
            remedy = "whole numbers only; a share is written as N * 3 // 4" if "." in token else ""
            raise ExpressionError(f"the number {token}", "a whole number in decimal digits", remedy, place)
        if len(token) > 19 or int(token) > LARGEST:
            raise ExpressionError(f"the number {token[:24]}", f"at most {LARGEST}", "", place)
        return str(int(self._take_token()))

    def _read_name(self, depth: int) -> Expression:
        place = self.place
        name = self._take_token()
        if self.token != "(":
            return Expression(name)
        if name not in _ARITIES:
            raise _refuse_function(name, place)
        self._take_token()
        operands = [self.read_sum(depth + 1)]
        while self.token == ",":
            self._take_token()
            operands.append(self.read_sum(depth + 1))
        self._expect_token(")")
        least, limit = _ARITIES[name]
        if not least <= len(operands) <= limit:
            count = f"{least}" if least == limit else f"{least} to {limit}"
            raise ExpressionError(f"{name} of {len(operands)}", f"{name} of {count}", "", place)
        return Expression(name, tuple(operands))

    def _take_token(self) -> str:
        token = self.token
        self._following += 1
        return token

    def _expect_token(self, token: str) -> None:
        if self.token != token:
            raise self.refuse_token(token)
        self._take_token()

    def refuse_token(self, expected: str) -> ExpressionError:
        token = self.token
        actual = f"`{token}`" if token else "the end"
        remedy = f"write {_REMEDIES[token]}" if token in _REMEDIES else ""
        return ExpressionError(actual, expected, remedy, self.place)


def _refuse_function(name: str, place: int) -> ExpressionError:
    near = [_SIMILAR[name]] if name in _SIMILAR else get_close_matches(name.lower(), _ARITIES, 1)
    remedy = f"write {near[0]}" if near else ""
    return ExpressionError(f"the function {name}", f"one of {', '.join(_ARITIES)}", remedy, place)


# -- computing


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value at sizes. Raises ExpressionError where there is none, and KeyError for a name without a size.

    >>> evaluate("cdiv(N, 256) * next_pow2(M)", {"N": 1000, "M": 5})
    32
    """
    return _compute(parse_canonical(text), sizes)


def _compute(expression: Expression, sizes: Mapping[str, int]) -> int:
    if not expression.operands:
        return int(expression.head) if expression.head.isdigit() else sizes[expression.head]
    numbers = [_compute(operand, sizes) for operand in expression.operands]
    if expression.head in ("//", "%", "cdiv") and numbers[1] == 0:
        actual = f"{expression}, where {expression.operands[1]} is 0"
        raise ExpressionError(actual, "a divisor that is not 0", f"max({expression.operands[1]}, 1)")
    value = -numbers[0] if len(numbers) == 1 and expression.head == "-" else _FUNCTIONS[expression.head](*numbers)
    if abs(value) > LARGEST:
        raise ExpressionError(f"{expression} = {value}", f"at most {LARGEST}")
    return value


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "+": lambda first, second: first + second,
    "-": lambda first, second: first - second,
    "*": lambda first, second: first * second,
    "//": lambda first, second: first // second,
    "%": lambda first, second: first % second,
    "cdiv": lambda first, second: -(-first // second),
    "next_pow2": lambda number: 1 << max(number - 1, 0).bit_length(),
    "min": min,
    "max": max,
}
