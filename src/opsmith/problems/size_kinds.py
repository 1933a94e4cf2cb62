"""Kinds of hidden sizes: what a draw gives each symbol, so that each property of sizes is drawn for each symbol.

A program may be wrong where a size is even, a multiple of 32, between two stated ones, just above the largest. So a
kind says for every symbol from which ranges its size comes: all symbols at once, each with another property (a Latin
square: eight draws for any number of symbols); or one symbol alone, in every order of magnitude, the others small or
as in the base shape.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise

from opsmith.problems.constraints import list_following
from opsmith.problems.problem import DEFAULT_SIZES, Problem
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import Level

Sizes = Mapping[str, int]  # of every symbol of a problem

GROWTH = 1.3  # how far beyond the largest stated size, at least ...
REACH = 2.0  # ... and at most
ABOVE = 1.08  # how far, at most, a size lies that is just above the largest one tried; at least NEAR
NEAR = 16
TINY, SMALL, MEDIUM, ALIGNED = 3, 8, 67, 128  # the largest sizes of such kinds
NEAREST = 2  # ranges that are just above
LADDER = 64  # draws of one symbol alone, of all symbols together: each in the next part of its magnitudes
MOST_GAPS = 4  # between stated sizes of one symbol, the widest


@dataclass(frozen=True)
class SizeRange:
    """Sizes from `low` to `high` that are multiples of `step`, or primes, or powers of two; drawn so that each order of
    magnitude is as likely."""

    low: int
    high: int
    step: int = 1
    form: str = ""  # "odd", "prime" or "power"; "": any multiple of `step`

    def draw_size(self, source: random.Random, most: int) -> int | None:
        """One of at most `most`, or the least of all; None: there is none."""
        high = max(self.low, min(self.high, most))
        wanted = math.exp(source.uniform(math.log(self.low), math.log(high + 1)))
        return self._find_near(min(int(wanted), high), high)

    def _find_near(self, wanted: int, high: int) -> int | None:
        """The nearest one not above `wanted`, or the least of the range."""
        if self.form == "prime":
            primes = _list_primes(1 << high.bit_length())
            first = bisect_left(primes, self.low)
            place = max(first, bisect_left(primes, wanted + 1) - 1)
            return primes[place] if place < len(primes) and primes[place] <= self.high else None
        if self.form == "power":
            size = 1 << (wanted.bit_length() - 1)
            size = size if size >= self.low else 2 * size
        elif self.form == "odd":
            size = wanted if wanted % 2 else wanted - 1 if wanted > self.low else wanted + 1
        else:
            size = max(wanted // self.step, -(-self.low // self.step)) * self.step
        return size if self.low <= size <= self.high else None

    def holds_size(self, size: int) -> bool:
        return self.low <= size <= self.high and self._find_near(size, self.high) == size


@dataclass(frozen=True)
class SizeKind:
    """What one draw gives: per symbol some ranges, of which one is chosen. `equal`: one size for all symbols.

    `alone`: the symbol that matters; the sizes of others shrink where a draw would be too large, and in a kind without
    one all do.
    """

    name: str
    ranges: Mapping[str, Sequence[SizeRange]]
    alone: str = ""
    equal: bool = False

    def draw_sizes(self, source: random.Random, shrink: float) -> dict[str, int] | None:
        """One attempt. `shrink`, of 1 to 0: how much of their ranges symbols have that may shrink."""
        if self.equal:
            range_ = source.choice(next(iter(self.ranges.values())))
            size = range_.draw_size(source, int(range_.high * shrink))
            return None if size is None else dict.fromkeys(self.ranges, size)
        sizes = {}
        for name, ranges in self.ranges.items():
            range_ = source.choice(ranges)
            most = range_.high if name == self.alone else int(range_.high * shrink)
            size = range_.draw_size(source, most)
            if size is None:
                return None
            sizes[name] = size
        return sizes

    def holds_size(self, name: str, size: int) -> bool:
        return any(range_.holds_size(size) for range_ in self.ranges[name])


_FORMS: Mapping[str, SizeRange] = {
    "tiny": SizeRange(1, TINY),
    "odd": SizeRange(3, MEDIUM, form="odd"),
    "thirty-two": SizeRange(32, ALIGNED, 32),
    "prime": SizeRange(2, MEDIUM, form="prime"),
    "sixteen": SizeRange(16, ALIGNED, 16),
    "even": SizeRange(2, MEDIUM, 2),
    "power": SizeRange(4, ALIGNED, form="power"),
    "eight": SizeRange(8, ALIGNED, 8),
}
_UNALIGNED = (_FORMS["odd"], _FORMS["prime"])
_ALIGNED = tuple(_FORMS[name] for name in ("eight", "sixteen", "thirty-two", "power"))
_SMALL = (SizeRange(1, SMALL),)
_STEP = 3  # from one symbol's form to the next one's: it shares no factor with their number


def list_varying(problem: Problem) -> list[str]:
    """The symbols whose size may vary, in the order of the file: all that a problem file states; of a task file those
    with a built-in size, and those that one of its shape sets varies: code may rely on what `global` alone sets."""
    names = [name for name in problem.base_sizes if name in problem.symbols]
    varied = {*DEFAULT_SIZES, *(name for sizes in problem.shapes.values() for name in sizes)}
    return [name for name in names if problem.reference or name in varied]


def list_independent(problem: Problem) -> list[str]:
    """Those that follow from no other by a constraint."""
    following = list_following(problem.constraints)
    return [name for name in list_varying(problem) if name not in following]


def list_tried(problem: Problem) -> list[Sizes]:
    """The shape sets that every program is tried at, with every symbol."""
    return [{**problem.base_sizes, **sizes} for sizes in choose_shape_sets(problem).values()]


def list_stated(problem: Problem) -> list[Sizes]:
    """Those, and the sets that are timed."""
    return [*list_tried(problem), *({**problem.base_sizes, **sizes} for sizes in problem.bench.values())]


def list_kinds(problem: Problem, level: Level) -> list[SizeKind]:
    """What is drawn at a level, beside what the levels before it draw."""
    if not list_varying(problem):
        return []
    return [*(_list_cheap(problem) if level is Level.CHEAP else _list_full(problem))]


def _list_cheap(problem: Problem) -> Iterator[SizeKind]:
    """All symbols tiny; odd or between stated sizes; aligned; then each one alone above those that are tried."""
    names, gaps = list_varying(problem), _find_gaps(problem)
    yield SizeKind("tiny", dict.fromkeys(names, (_FORMS["tiny"],)))
    yield SizeKind("odd or between", {name: (*_UNALIGNED, *gaps[name]) for name in names})
    yield SizeKind("aligned", dict.fromkeys(names, _ALIGNED))
    for name in list_independent(problem):
        above = [*_list_above(problem, name), SizeRange(*_beyond(problem, name), 32)]
        yield _vary_alone(problem, f"above {name}", name, above, False)


def _list_full(problem: Problem) -> Iterator[SizeKind]:
    names, gaps = list_varying(problem), _find_gaps(problem)
    forms = list(_FORMS.items())
    for number, (form, _) in enumerate(forms):
        ranges = {name: (forms[(number + _STEP * place) % len(forms)][1],) for place, name in enumerate(names)}
        yield SizeKind(f"mixed from {form}", ranges)
    yield SizeKind("equal", dict.fromkeys(names, (SizeRange(TINY + 1, MEDIUM), *_ALIGNED)), equal=True)
    for number in range(2):
        yield SizeKind(f"between all, draw {number}", gaps)
    for pair in combinations(names, 2):
        tiles = dict.fromkeys(pair, (_FORMS["thirty-two"],))
        yield SizeKind(f"tiles of {' and '.join(pair)}", {**dict.fromkeys(names, _SMALL), **tiles})
    for name in list_independent(problem):
        yield from _list_alone(problem, name, gaps[name])


def _list_alone(problem: Problem, name: str, gaps: Sequence[SizeRange]) -> Iterator[SizeKind]:
    """One symbol in every property and magnitude, the others small; in some also with the others at base."""
    highest = _beyond(problem, name)[1]
    above = _list_above(problem, name)
    for number, range_ in enumerate(above[:NEAREST]):
        yield _vary_alone(problem, f"above {name}, part {number}", name, [range_], False)
    for form, range_ in _FORMS.items():
        if form != "tiny":
            yield _vary_alone(problem, f"{form} {name}", name, [replace(range_, high=highest)], False)
    for number, range_ in enumerate(_list_steps(problem, name, highest)):
        yield _vary_alone(problem, f"step {number} of {name}", name, [range_], False)
    yield _vary_alone(problem, f"between {name}, others at base", name, gaps, True)
    yield _vary_alone(problem, f"above {name}, others at base", name, above, True)
    aligned = [replace(range_, high=max(highest, range_.low)) for range_ in _ALIGNED]
    yield _vary_alone(problem, f"aligned {name}, others at base", name, aligned, True)


def _list_steps(problem: Problem, name: str, highest: int) -> Iterator[SizeRange]:
    """Parts of equal magnitude: most up to the largest size that is tried, the rest from there on."""
    tried = max(2 * SMALL, *(sizes[name] for sizes in list_tried(problem)))
    count = LADDER // len(list_independent(problem))
    near = max(1, count * 3 // 4)
    edges = [SMALL * (tried / SMALL) ** (step / near) for step in range(near)]
    edges += [tried * (highest / tried) ** (step / max(1, count - near)) for step in range(count - near + 1)]
    sizes = [math.ceil(edge) for edge in edges]
    return (SizeRange(low + 1, high) for low, high in pairwise(sizes) if high > low)


def _vary_alone(problem: Problem, title: str, name: str, ranges: Sequence[SizeRange], is_at_base: bool) -> SizeKind:
    others: dict[str, Sequence[SizeRange]] = {
        other: (SizeRange(problem.base_sizes[other], problem.base_sizes[other]),) if is_at_base else _SMALL
        for other in list_varying(problem)
    }
    return SizeKind(title, {**others, name: ranges}, name)


def _find_gaps(problem: Problem) -> dict[str, Sequence[SizeRange]]:
    """Per symbol the sizes between those that are tried, from 1 on; where there are none, small ones."""
    tried = list_tried(problem)
    gaps: dict[str, Sequence[SizeRange]] = {}
    for name in list_varying(problem):
        edges = sorted({0, *(sizes[name] for sizes in tried)})
        ranges = [SizeRange(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]
        widest = sorted(ranges, key=lambda range_: math.log(range_.low / (range_.high + 1)))[:MOST_GAPS]
        gaps[name] = sorted(widest, key=lambda range_: range_.low) or _SMALL
    return gaps


def _list_above(problem: Problem, name: str) -> list[SizeRange]:
    """Just above the largest that is tried, up to the largest that is timed, and beyond it."""
    largest = max(sizes[name] for sizes in list_tried(problem))
    near = max(math.ceil(ABOVE * largest), largest + NEAR)
    low, high = _beyond(problem, name)
    edges = [largest, largest + 2, largest + NEAR, near, low - 1, high]
    return [SizeRange(start + 1, end) for start, end in pairwise(edges) if start < end]


def _beyond(problem: Problem, name: str) -> tuple[int, int]:
    """From 1.3 to 2 times the largest size that is stated."""
    largest = max(sizes[name] for sizes in list_stated(problem))
    return math.ceil(GROWTH * largest), max(32, math.ceil(REACH * largest))


@lru_cache(maxsize=8)
def _list_primes(most: int) -> Sequence[int]:
    sieve = bytearray([1]) * (most + 1)
    sieve[:2] = b"\0\0"
    for number in range(2, math.isqrt(most) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, most + 1, number)))
    return tuple(number for number, is_prime in enumerate(sieve) if is_prime)
