"""Hidden sizes: shape sets that a file does not state, so that a program cannot be made for the stated ones.

A problem has a pool of them: one of each kind (`size_kinds`), drawn from the problem's digest, the level, the kind and
a secret. All programs of a run meet the same: no text draws again, and what is prepared for a size of the cheap level
serves all programs of the problem.
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
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import has_whole_dims
from opsmith.problems.size_kinds import SizeKind, Sizes, list_kinds, list_stated, list_varying
from opsmith.records import Level, Scrutiny

Material = TypeVar("Material")  # what is prepared for a program at some sizes

MOST_NUMBERS = 2**22  # in all tensors of a draw
MOST_SIMPLE_NUMBERS = 2**20  # ... of the kinds that draw every symbol
MOST_POINTS = 2**21  # of a loop nest over all symbols
MOST_WORK = 2**24  # points and numbers of all draws that the full level adds, the smallest first
MOST_PREPARED = 2**22  # numbers of all members that stay prepared: some 100 bytes each
ATTEMPTS = 48  # draws of one member before it is given up


@dataclass(frozen=True)
class HiddenMember:
    """One draw of hidden sizes and of their data."""

    scrutiny: Scrutiny  # its level alone, not those before it
    kind: str

    def draw_number(self, *texts: str) -> int:
        return self.scrutiny.draw_number(self.scrutiny.level, self.kind, *texts)


class HiddenPool(Generic[Material]):
    """The hidden sizes of a problem, and what is prepared at those of the cheap level that were used last.

    `prepare` makes the material of sizes where every dim is whole, with data from a seed; None: data cannot be made or
    the reference does not run there, so that a member is drawn again.
    """

    def __init__(self, problem: Problem, prepare: Callable[[Sizes, int], Material | None]) -> None:
        self.problem = problem
        self._prepare = prepare
        self._plans: dict[Scrutiny, list[tuple[HiddenMember, Sizes]]] = {}
        self._sizes: dict[HiddenMember, Sizes | None] = {}  # as prepared; None: there is no such member
        self._prepared: dict[HiddenMember, Material] = {}  # the last used at the end
        self._numbers: dict[HiddenMember, int] = {}  # in all tensors of those prepared

    def list_materials(self, scrutiny: Scrutiny) -> Iterator[Material]:
        """Those of all members of its levels, within each level the cheapest first."""
        used: list[Sizes] = []
        for level in scrutiny.levels:
            for member, first in self.plan_level(Scrutiny(scrutiny.secret, level)):
                if first in used:
                    continue
                material = self._find_material(member)
                sizes = self._sizes[member]
                if material is not None and sizes is not None and sizes not in used:
                    used.append(sizes)
                    yield material

    def plan_level(self, scrutiny: Scrutiny) -> list[tuple[HiddenMember, Sizes]]:
        """The members of its level alone with the sizes drawn first, the cheapest first, and no more than the level may
        cost."""
        if scrutiny not in self._plans:
            members = (HiddenMember(scrutiny, kind) for kind in self.kinds[scrutiny.level])
            drawn = ((member, next(self._list_candidates(member), None)) for member in members)
            planned = sorted(((m, sizes) for m, sizes in drawn if sizes), key=lambda pair: self._count_work(pair[1]))
            left = math.inf if scrutiny.level is Level.CHEAP else MOST_WORK
            while left < sum(self._count_work(sizes) for _, sizes in planned):
                planned.pop()
            self._plans[scrutiny] = planned
        return self._plans[scrutiny]

    @cached_property
    def kinds(self) -> Mapping[Level, Mapping[str, SizeKind]]:
        """By name, those of each level alone."""
        return {level: {kind.name: kind for kind in list_kinds(self.problem, level)} for level in Level}

    def _list_candidates(self, member: HiddenMember) -> Iterator[Sizes]:
        """The attempts at one member that are affordable and no stated sizes."""
        source = random.Random(member.draw_number(self._digest))
        for attempt in range(ATTEMPTS):
            sizes = self._attempt_draw(self.kinds[member.scrutiny.level][member.kind], source, attempt)
            if sizes is not None and sizes not in self._stated:
                yield sizes

    def _attempt_draw(self, kind: SizeKind, source: random.Random, attempt: int) -> Sizes | None:
        """Within each half of the attempts sizes shrink, for problems of many dims; in the second half they are
        multiples of what divides them, for dims such as D/2."""
        half = ATTEMPTS // 2
        drawn = kind.draw_sizes(source, 1 - (attempt % half) / half)
        if drawn is not None and attempt >= half:
            drawn = {name: -(-size // self._quanta[name]) * self._quanta[name] for name, size in drawn.items()}
        return drawn and self.complete_sizes(drawn, MOST_NUMBERS if kind.alone else MOST_SIMPLE_NUMBERS)

    def complete_sizes(self, drawn: Sizes, most_numbers: int = MOST_NUMBERS) -> Sizes | None:
        """With all that follows by constraints; None: they break one, a dim is not whole, or a draw costs too much."""
        sizes = self._follow_possible(drawn)
        all_sizes = {**self.problem.base_sizes, **(sizes or {})}
        if sizes is None or self.problem.count_numbers(all_sizes) > most_numbers:
            return None
        return sizes if self._count_points(all_sizes) <= MOST_POINTS else None

    def is_possible(self, drawn: Sizes) -> bool:
        """Whether there is the problem at such sizes."""
        return self._follow_possible(drawn) is not None

    def _follow_possible(self, drawn: Sizes) -> Sizes | None:
        sizes = follow_constraints(self.problem.constraints, drawn)
        all_sizes = {**self.problem.base_sizes, **(sizes or {})}
        is_whole = has_whole_dims(self.problem, all_sizes) and satisfies_all(self.problem.constraints, all_sizes)
        return sizes if is_whole else None

    def _count_points(self, sizes: Sizes) -> int:
        """What follows from other symbols is no loop."""
        return self.problem.count_points({**sizes, **dict.fromkeys(list_following(self.problem.constraints), 1)})

    def _count_work(self, sizes: Sizes) -> int:
        all_sizes = {**self.problem.base_sizes, **sizes}
        return self._count_points(all_sizes) + self.problem.count_numbers(all_sizes)

    @cached_property
    def _quanta(self) -> Sizes:
        """What each symbol is divided by in dims."""
        quanta = dict.fromkeys(list_varying(self.problem), 1)
        for dim in self.problem.dims:
            for name, power in dim.powers:
                if power > 0 and name in quanta:
                    quanta[name] = math.lcm(quanta[name], dim.coefficient.denominator)
        return quanta

    @cached_property
    def _stated(self) -> list[Sizes]:
        """The stated sizes of what varies."""
        names = list_varying(self.problem)
        return [{name: sizes[name] for name in names} for sizes in list_stated(self.problem)]

    @cached_property
    def _digest(self) -> str:
        return hash_problem(self.problem)

    def _find_material(self, member: HiddenMember) -> Material | None:
        """Prepared once, as long as it is used now and then; at the full level each time."""
        material = self._prepared.pop(member, None)
        if material is None:
            material = self._prepare_member(member)
            sizes = {**self.problem.base_sizes, **(self._sizes[member] or {})}
            self._numbers[member] = self.problem.count_numbers(sizes)
        if material is not None and member.scrutiny.level is Level.CHEAP:
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
