"""Cuts: where the statements of a reference come apart well, best first.

A cut is a set of statements that depend on nothing outside of it; a chain of such sets, each within the next, makes the
parts. A part is good when the functions offered can do its work, each once, and when little crosses its border.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.planning.material import WorkGraph, list_bits
from opsmith.targets.step.planning.vocabulary import FnWords, read_fn_words

MOST_SETS = 90  # that chains are made of
MOST_CROSSING = 3  # values over one border
MOST_CHAINS = 400
PART = 7.0  # what a further part costs ...
UNSERVED = 9.0  # ... an operation that no function is left for ...
CROSSING = 5.0  # ... a second value over a border ...
IDLE = 30.0  # ... and a part with too little work to be one


@dataclass(frozen=True, order=True)
class _Chain:
    bound: float
    cost: float
    sets: tuple[int, ...] = field(compare=False)


class CutFinder:
    """The chains of sets of a task's work."""

    def __init__(self, material: WorkGraph, rank_value: Callable[[str], float]) -> None:
        self._material, self._rank_value = material, rank_value
        self._words = [read_fn_words(fn) for fn in material.spec.fns]
        self._costs: dict[int, float] = {}
        self._all = (1 << len(material.work)) - 1

    def list_chains(self) -> Iterator[list[int]]:
        """The parts of every chain of two or more, as bits, the cheapest chain first."""
        queue = [_Chain(self._remaining[0], 0.0, (0,))]
        count = 0
        while queue and count < MOST_CHAINS:
            chain = heapq.heappop(queue)
            last = chain.sets[-1]
            if last == self._all:
                if len(chain.sets) > 2:
                    count += 1
                    yield [second & ~first for first, second in zip(chain.sets, chain.sets[1:], strict=False)]
                continue
            for following, cost in self._steps(last):
                total = chain.cost + cost
                if len(chain.sets) < 8:
                    heapq.heappush(queue, _Chain(total + self._remaining[following], total, (*chain.sets, following)))

    @cached_property
    def sets(self) -> list[int]:
        """Closed sets with a small border, the empty and the whole one among them, small ones first."""
        closures = list(dict.fromkeys(self._material.ancestors))
        prefixes = [(1 << number) - 1 for number in range(1, len(self._material.work))]
        pairs = [first | second for number, first in enumerate(closures) for second in closures[:number]]
        sets = [
            closed
            for closed in dict.fromkeys([*closures, *prefixes, *pairs])
            if 0 < closed < self._all and self._is_fit(closed)
        ]
        best = sorted(
            sets,
            key=lambda closed: (
                len(self._material.list_crossing(closed)),
                abs(2 * closed.bit_count() - len(self._material.work)),
            ),
        )
        return [0, *sorted(best[:MOST_SETS], key=int.bit_count), self._all]

    def _is_fit(self, inside: int) -> bool:
        """Whether what crosses the border of a set has a type, and is little."""
        if any(0 < inside & group < group for group in self._material.groups):
            return False
        crossing = self._material.list_borders(inside)
        return 0 < len(crossing) <= MOST_CROSSING and all(self._has_type(name) for name in crossing)

    def _has_type(self, name: str) -> bool:
        return self._material.find_type(name) is not None

    @cached_property
    def _remaining(self) -> dict[int, float]:
        """The least that remains to be paid from a set on."""
        remaining = {self._all: 0.0}
        for closed in reversed(self.sets[:-1]):
            remaining[closed] = min(
                (cost + remaining[following] for following, cost in self._steps(closed)), default=1e9
            )
        return remaining

    def _steps(self, closed: int) -> Iterator[tuple[int, float]]:
        for following in self.sets:
            if following != closed and following & closed == closed:
                yield following, self._weigh_part(following & ~closed) + self._weigh_border(following)

    def _weigh_border(self, inside: int) -> float:
        """What crossing a border costs: every value beyond the first, and types that functions do not speak."""
        crossing = [] if inside == self._all else self._material.list_borders(inside)
        return sum(CROSSING - self._rank_value(name) for name in crossing) - (CROSSING if crossing else 0.0)

    def _weigh_part(self, section: int) -> float:
        """What a part costs: much work, work that functions cannot do one each, and many streams to take."""
        if section not in self._costs:
            numbers = list_bits(section)
            operations = [(number, word) for number in numbers for word in self._material.operations[number]]
            served, used = count_served(self._material, operations, self._words)
            size = len(operations) + 0.3 * (len(numbers) - len({number for number, _ in operations}))
            cost = PART + size * size / 2 + UNSERVED * (len(operations) - served)
            cost += IDLE * (2 - min(used, 2)) / 2 if len(self._words) > 1 else 0.0
            sources = {name for number in numbers for name in self._material.needs[number]}
            targets = {name for number in numbers for name in self._material.work[number].targets}
            self._costs[section] = cost + max(0, len(sources - targets) - 2)
        return self._costs[section]


def count_served(material: WorkGraph, operations: Sequence[tuple[int, str]], fns: Sequence[FnWords]) -> tuple[int, int]:
    """How many operations find a word of a function's body each, and how many functions that takes.

    Only functions count all of whose words the operations may need: half of a function is of no use.
    """
    expected_words = {word for _, word in operations}
    slots = [
        (fn, word)
        for fn in fns
        if fn.words and all(any(fn.can_serve(word, operation) for operation in expected_words) for word in fn.words)
        for word in fn.words
    ]
    owners: dict[int, int] = {}  # slot -> operation
    served = sum(_find_slot(material, operations, slots, number, owners, set()) for number in range(len(operations)))
    return served, len({slots[slot][0].func_name for slot in owners})


def _find_slot(
    material: WorkGraph,
    operations: Sequence[tuple[int, str]],
    slots: Sequence[tuple[FnWords, str]],
    number: int,
    owners: dict[int, int],
    visited: set[int],
) -> bool:
    """One step of bipartite matching."""
    place, operation = operations[number]
    mentioned = material.mentions[place]
    for slot, (fn, word) in enumerate(slots):
        if slot in visited or not fn.can_serve(word, operation) or not mentioned <= fn.tensors | fn.reads:
            continue
        visited.add(slot)
        if slot not in owners or _find_slot(material, operations, slots, owners[slot], owners, visited):
            owners[slot] = number
            return True
    return False


def choose_fns(material: WorkGraph, section: int, fns: Sequence[FnSpec]) -> tuple[str, ...]:
    """The functions that share an operation with a part, and those that share none with the whole reference; all, if
    none does. Where a function has an operation by name, others count only if they fold."""
    operations = {word for number in list_bits(section) for word in material.operations[number]}
    everywhere = {word for words in material.operations for word in words}
    own = [read_fn_words(fn) for fn in fns]
    named = {word for words in own for word in words.words}
    sharing = {
        words.func_name
        for words in own
        for operation in operations
        if operation in words.words or ((operation not in named or words.is_stateful) and words.shares([operation]))
    }
    here = {name for number in list_bits(section) for name in material.mentions[number]}
    foreign = {name for names in material.mentions for name in names} - here
    chosen = [
        words.func_name
        for words in own
        if (words.func_name in sharing or not words.shares(everywhere))
        and foreign.isdisjoint(words.tensors | words.reads)
    ]
    sharing &= set(chosen)
    return tuple(chosen) if sharing and len(chosen) < len(fns) else ()
