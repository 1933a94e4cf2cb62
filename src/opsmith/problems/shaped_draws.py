"""Shaped draws: the distributions that programs of a problem are tried on, at sizes that the problem states.

At the cheap level two distributions, in turn by the secret; at the full one all of them, some several times, and each
at two shape sets. A distribution is left out where the problem cannot be judged on it, however weak.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from opsmith.problems.digest import hash_problem
from opsmith.problems.distributions import STRENGTHS, Shaping, list_usable
from opsmith.problems.problem import Distribution, Problem
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import Level, Scrutiny

Draw = TypeVar("Draw")
MakeDraw = Callable[
    [str, Mapping[str, int], int, Shaping], Draw | str
]  # shape set, sizes, seed; a text: why there is none

CHEAP_DRAWS = 2
BASE_VARIANTS, SMALL_VARIANTS = 3, 2  # of each distribution, at the full level
MOST_NUMBERS = 2**18  # in all tensors of a draw
MOST_KEPT = 2**22  # ... of all draws that stay prepared

# what a strength means something to
_GRADED = frozenset(Distribution) - {Distribution.SPARSE, Distribution.PERIODIC, Distribution.FEW}


class ShapedPool(Generic[Draw]):
    """The shaped draws of a problem, by scrutiny; those of the last secret stay prepared."""

    def __init__(self, problem: Problem, make_draw: MakeDraw[Draw]) -> None:
        self.problem = problem
        self._make_draw = make_draw
        self._secret = ""
        self._prepared: dict[tuple[Level, int], list[Draw]] = {}
        self._numbers = 0

    def list_groups(self, scrutiny: Scrutiny) -> Iterator[list[Draw]]:
        """Draws of equal sizes together. Raises TaskFault for lack of memory."""
        if scrutiny.secret != self._secret:
            self._secret, self._numbers = scrutiny.secret, 0
            self._prepared.clear()
        for level in scrutiny.levels:
            for number in range(1 if level is Level.CHEAP else BASE_VARIANTS + SMALL_VARIANTS):
                if group := self._find_group(Scrutiny(scrutiny.secret, level), number):
                    yield group

    def explain_left_out(self) -> dict[Distribution, str]:
        """The distributions that programs are not tried on, and why. Raises TaskFault for lack of memory."""
        place = self._list_places()[0]
        results = {kind: self._try_strengths(place, 0, Shaping(kind)) for kind in Distribution}
        return {kind: result for kind, result in results.items() if isinstance(result, str)}

    def _find_group(self, scrutiny: Scrutiny, number: int) -> list[Draw]:
        key = (scrutiny.level, number)
        if key in self._prepared:
            return self._prepared[key]
        source = random.Random(scrutiny.draw_number("distributions", self._digest, scrutiny.level, str(number)))
        kinds = source.sample(list(Distribution), len(Distribution))
        places = self._list_places()
        is_base = scrutiny.level is Level.CHEAP or number < BASE_VARIANTS or len(places) == 1
        place = places[0] if is_base else source.choice(places[1:])
        group: list[Draw] = []
        for kind in kinds:
            variant = number if scrutiny.level is Level.FULL else source.randrange(BASE_VARIANTS + SMALL_VARIANTS)
            draw = self._try_strengths(place, source.getrandbits(48), Shaping(kind, variant))
            group += [] if isinstance(draw, str) else [draw]
            if scrutiny.level is Level.CHEAP and len(group) == CHEAP_DRAWS:
                break
        self._numbers += len(group) * self._count_numbers(place[1])
        if scrutiny.level is Level.CHEAP or self._numbers <= MOST_KEPT:
            self._prepared[key] = group
        return group

    def _try_strengths(self, place: tuple[str, Mapping[str, int]], seed: int, shaping: Shaping) -> Draw | str:
        """The strongest draw that programs can be judged on, or why there is none."""
        result: Draw | str = list_usable(self.problem)[shaping.kind]
        if result:
            return result
        for strength in STRENGTHS if shaping.kind in _GRADED else STRENGTHS[:1]:
            result = self._make_draw(*place, seed, shaping.weaken(strength))
            if not isinstance(result, str):
                break
        return result

    def _list_places(self) -> Sequence[tuple[str, Mapping[str, int]]]:
        """Shape sets of the problem's own, the base first where it is small enough, else the smallest alone."""
        own = {"base", *self.problem.shapes}
        sets = [(name, sizes) for name, sizes in choose_shape_sets(self.problem).items() if name in own]
        small = [place for place in sets if self._count_numbers(place[1]) <= MOST_NUMBERS]
        return small or [min(sets, key=lambda place: self._count_numbers(place[1]))]

    def _count_numbers(self, sizes: Mapping[str, int]) -> int:
        return self.problem.count_numbers({**self.problem.base_sizes, **sizes})

    @property
    def _digest(self) -> str:
        return hash_problem(self.problem)
