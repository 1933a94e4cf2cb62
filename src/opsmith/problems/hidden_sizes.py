"""Hidden sizes: shape sets that a file does not state, so that a program cannot be made for the stated ones.

A problem has a pool of them: of each kind a few members, drawn from the problem's digest, the level, the member's
number and a secret. All programs of a run meet the same: no text draws again, and what is prepared for a size serves
all programs of the problem.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from opsmith.problems.constraints import follow_constraints, list_following, satisfies_all
from opsmith.problems.digest import hash_problem
from opsmith.problems.problem import DEFAULT_SIZES, Problem
from opsmith.problems.shape_sets import choose_shape_sets, has_whole_dims
from opsmith.records import Level, Scrutiny

Sizes = Mapping[str, int]  # of every symbol of a problem
Material = TypeVar("Material")  # what is prepared for a program at some sizes

MEMBERS: Mapping[Level, int] = {Level.CHEAP: 1, Level.FULL: 2}  # of each kind, of each level's own draws
GROWTH = 1.3  # how far beyond the largest stated size, at least ...
REACH = 2.0  # ... and at most
MOST_NUMBERS = 2**22  # in all tensors of a draw
MOST_SIMPLE_NUMBERS = 2**20  # ... of the kinds that are small in every symbol
MOST_POINTS = 2**21  # of a loop nest over all symbols
MOST_PREPARED = 2**22  # numbers of all members that stay prepared: some 100 bytes each
ATTEMPTS = 24  # draws of one member before it is given up
TINY, SMALL, MEDIUM = 3, 8, 67  # the largest sizes of such kinds

_PRIMES = tuple(number for number in range(3, 132) if all(number % factor for factor in range(2, number)))


@dataclass(frozen=True)
class HiddenMember:
    """One draw of hidden sizes and of their data."""

    scrutiny: Scrutiny  # its level alone, not those before it
    kind: str
    number: int  # of the kind's draws

    def draw_number(self, *texts: str) -> int:
        return self.scrutiny.draw_number(self.scrutiny.level, self.kind, str(self.number), *texts)


class HiddenPool(Generic[Material]):
    """The hidden sizes of a problem, and what is prepared at those used last.

    `prepare` makes the material of sizes where every dim is whole, with data from a seed; None: data cannot be made or
    the reference does not run there, so that a member is drawn again.
    """

    def __init__(self, problem: Problem, prepare: Callable[[Sizes, int], Material | None]) -> None:
        self.problem = problem
        self._prepare = prepare
        self._sizes: dict[HiddenMember, Sizes | None] = {}  # None: there is no such member
        self._prepared: dict[HiddenMember, Material] = {}  # the last used at the end
        self._numbers: dict[HiddenMember, int] = {}  # in all tensors of those prepared

    def list_materials(self, scrutiny: Scrutiny) -> Iterator[Material]:
        """Those of all members of its levels, the smallest kinds first: tiny, odd, prime, and for each symbol one of
        1.3 to 2 times the largest stated size."""
        used: list[Sizes] = []
        for member in self._list_members(scrutiny):
            material = self._find_material(member)
            sizes = self._sizes[member]
            if material is not None and sizes is not None and sizes not in used:
                used.append(sizes)
                yield material

    def _list_members(self, scrutiny: Scrutiny) -> Iterator[HiddenMember]:
        for level in scrutiny.levels:
            for number in range(MEMBERS[level]):
                yield from (HiddenMember(Scrutiny(scrutiny.secret, level), kind, number) for kind in self.kinds)

    @cached_property
    def kinds(self) -> list[str]:
        return ["tiny", "odd", "prime", *(f"beyond {name}" for name in list_independent(self.problem))]

    def _list_candidates(self, member: HiddenMember) -> Iterator[Sizes]:
        """The attempts at one member that are affordable and no stated sizes."""
        source = random.Random(member.draw_number(self._digest))
        most_numbers = MOST_SIMPLE_NUMBERS if member.kind in _SIMPLE else MOST_NUMBERS
        for attempt in range(ATTEMPTS):
            drawn = _draw_sizes(self.problem, member.kind, source, attempt)
            sizes = follow_constraints(self.problem.constraints, drawn)
            if sizes is None:
                continue
            if _is_affordable(self.problem, sizes, most_numbers) and not any(
                all(own[name] == size for name, size in sizes.items()) for own in self._stated
            ):
                yield sizes

    @cached_property
    def _stated(self) -> list[Sizes]:
        """With every symbol."""
        return [{**self.problem.base_sizes, **sizes} for sizes in _list_stated(self.problem)]

    @cached_property
    def _digest(self) -> str:
        return hash_problem(self.problem)

    def _find_material(self, member: HiddenMember) -> Material | None:
        """Prepared once, as long as it is used now and then."""
        material = self._prepared.pop(member, None)
        if material is None:
            material = self._prepare_member(member)
            sizes = {**self.problem.base_sizes, **(self._sizes[member] or {})}
            self._numbers[member] = self.problem.count_numbers(sizes)
        if material is not None:
            self._prepared[member] = material
            self._drop_surplus()
        return material

    def _prepare_member(self, member: HiddenMember) -> Material | None:
        seed = member.draw_number(self._digest, "data")
        if member in self._sizes:
            sizes = self._sizes[member]
            return self._prepare(sizes, seed) if sizes is not None else None
        for candidate in self._list_candidates(member):
            material = self._prepare(candidate, seed)
            if material is not None:
                self._sizes[member] = candidate
                return material
        self._sizes[member] = None
        return None

    def _drop_surplus(self) -> None:
        """The one used last stays, whatever its size."""
        for member in list(self._prepared)[:-1]:
            if sum(self._numbers[other] for other in self._prepared) <= MOST_PREPARED:
                return
            del self._prepared[member]


def write_sizes(sizes: Sizes) -> str:
    """`hidden sizes M = 5, N = 7`: what findings for a person call them."""
    return f"hidden sizes {', '.join(f'{name} = {size}' for name, size in sizes.items())}"


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


def _list_stated(problem: Problem) -> list[Sizes]:
    return [*choose_shape_sets(problem).values(), *problem.bench.values()]


def _is_affordable(problem: Problem, sizes: Sizes, most_numbers: int) -> bool:
    all_sizes = {**problem.base_sizes, **sizes}
    if not has_whole_dims(problem, all_sizes) or not satisfies_all(problem.constraints, all_sizes):
        return False
    looped = {**all_sizes, **dict.fromkeys(list_following(problem.constraints), 1)}  # what follows is no loop
    return problem.count_numbers(all_sizes) <= most_numbers and problem.count_points(looped) <= MOST_POINTS


def _draw_sizes(problem: Problem, kind: str, source: random.Random, attempt: int) -> Sizes:
    """One attempt. The second half of them is of even numbers, for dims such as D/2; within each half sizes shrink, for
    problems of many dims."""
    if kind not in _SIMPLE:
        return _draw_beyond(problem, kind.removeprefix("beyond "), source, attempt)
    half = ATTEMPTS // 2
    scale, largest = 1 + attempt // half, max(TINY, MEDIUM * (half - attempt % half) // half)
    return {name: _SIMPLE[kind](source, largest) * scale for name in list_varying(problem)}


def _draw_tiny(source: random.Random, largest: int) -> int:
    return source.randint(1, min(TINY, largest))


def _draw_odd(source: random.Random, largest: int) -> int:
    return 2 * source.randint(1, largest // 2) + 1


def _draw_prime(source: random.Random, largest: int) -> int:
    return source.choice([prime for prime in _PRIMES if prime <= largest])


_SIMPLE: Mapping[str, Callable[[random.Random, int], int]] = {
    "tiny": _draw_tiny,
    "odd": _draw_odd,
    "prime": _draw_prime,
}


def _draw_beyond(problem: Problem, name: str, source: random.Random, attempt: int) -> Sizes:
    """One symbol larger than at any stated set, the others small or, in every second attempt, as in the base shape."""
    base = problem.base_sizes
    largest = max({**base, **sizes}[name] for sizes in _list_stated(problem))
    size = source.randint(math.ceil(GROWTH * largest), math.ceil(REACH * largest))
    is_small = attempt % 2 == 0
    sizes = {symbol: source.randint(1, SMALL) if is_small else base[symbol] for symbol in list_varying(problem)}
    return {**sizes, name: size}
