"""Coverage of hidden sizes: which share of a symbol's sizes no draw of a level can reach, whatever the secret.

A symbol's sizes are those from 1 to twice the largest stated one that keep whole dims and constraints. What is left is
too large for a draw, or lies between the ranges of the kinds.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping

from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.problem import Problem
from opsmith.problems.size_kinds import REACH, SizeKind, Sizes, list_independent, list_stated, list_tried
from opsmith.records import Level

SAMPLE = 200  # sizes of a symbol that are looked at, evenly out of all
COMPLETIONS = 6  # ways of choosing the others that are looked at


def find_unreached(problem: Problem) -> dict[Level, dict[str, float]]:
    """Per level and symbol the share of its sizes, of 0 to 1, that neither this level nor one before it can reach."""
    pool: HiddenPool[Sizes] = HiddenPool(problem, lambda sizes, _: sizes)
    shares: dict[Level, dict[str, float]] = {level: {} for level in Level}
    for name in list_independent(problem):
        highest = int(REACH * max(sizes[name] for sizes in list_stated(problem)))
        sample = range(1, highest + 1, max(1, highest // SAMPLE))
        possible = [size for size in sample if _is_reached(pool, pool.kinds[Level.CHEAP].values(), name, size, False)]
        left = [size for size in possible if all(sizes[name] != size for sizes in list_tried(problem))]
        for level in Level:
            left = [size for size in left if not _is_reached(pool, pool.kinds[level].values(), name, size, True)]
            shares[level][name] = len(left) / max(1, len(possible))
    return shares


def write_unreached(shares: Mapping[Level, Mapping[str, float]]) -> str:
    """One line for each level: `cheap level: M 3 %, N 0 %`."""
    return "\n".join(
        f"{level} level: {', '.join(f'{name} {100 * share:.3g} %' for name, share in row.items())}"
        for level, row in shares.items()
    )


def _is_reached(pool: HiddenPool[Sizes], kinds: Collection[SizeKind], name: str, size: int, is_drawn: bool) -> bool:
    """Whether a draw may give a symbol this size; `is_drawn` False: whether there is the problem at that size."""
    for kind in kinds:
        if is_drawn and not kind.holds_size(name, size):
            continue
        for others in _list_completions(kind):
            drawn = dict.fromkeys(others, size) if kind.equal else {**others, name: size}
            if pool.complete_sizes(drawn) is not None if is_drawn else pool.is_possible(drawn):
                return True
    return False


def _list_completions(kind: SizeKind) -> Iterator[Sizes]:
    """Small sizes of all symbols, the smallest first."""
    yield {name: min(range_.low for range_ in ranges) for name, ranges in kind.ranges.items()}
    for number in range(COMPLETIONS):
        if drawn := kind.draw_sizes(random.Random(number), number / COMPLETIONS):
            yield drawn
