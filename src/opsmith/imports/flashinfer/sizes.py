"""The sizes of an imported definition: base sizes small enough, shape sets that keep its constraints, sets to be timed.

All of it is decided by the definition and its workloads alone, so that equal files give equal problems. The base is the
first workload, halved axis by axis until its tensors fit; what breaks a constraint is no step.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from opsmith.problems.constraints import follow_constraints, list_following, satisfies_all
from opsmith.records import content_hash

Sizes = Mapping[str, int]  # of every dim

FLOOR = 16  # below which no axis is halved
LEAST_BENCH, MOST_BENCH = 3, 6
BENCH_FACTOR = 8  # how many times the bytes of the base a timed set may have
_FIRST = (6, 10, 14, 18, 22, 26, 30, 34)  # sizes of axes that no workload knows
_ODD = (7, 13, 11, 19, 17, 23, 29, 31)
_TRIES = 2000


@dataclass(frozen=True)
class SizeRules:
    """What sizes of a definition must keep."""

    dims: Sequence[str]
    constraints: Sequence[str]
    count_bytes: Callable[[Sizes], int]  # of all tensors

    def complete_sizes(self, sizes: Sizes) -> dict[str, int] | None:
        """With the dims that follow; None: a constraint is broken."""
        completed = follow_constraints(self.constraints, sizes)
        is_kept = completed is not None and satisfies_all(self.constraints, completed)
        return {name: completed[name] for name in self.dims} if completed is not None and is_kept else None

    @property
    def free(self) -> list[str]:
        """The dims that follow from no others."""
        following = list_following(self.constraints)
        return [name for name in self.dims if name not in following]

    def find_near(self, goal: Sizes) -> dict[str, int] | None:
        """Sizes that keep every constraint, as little above the goal ones as a search finds; None: none."""
        source = random.Random(content_hash("sizes", *self.constraints, str(sorted(goal.items()))))
        for attempt in range(_TRIES):
            reach = attempt // 20  # further and further
            completed = self.complete_sizes({name: _move_size(size, reach, source) for name, size in goal.items()})
            if completed is not None:
                return completed
        return None


def _move_size(size: int, reach: int, source: random.Random) -> int:
    """The size itself, one a little above it, or the next multiple of what is asked for most."""
    multiple = source.choice((8, 16, 64, 128))
    moved = (size, size + source.randint(0, reach), -(-size // multiple) * multiple)
    return source.choice(moved) if reach else size


def choose_base(
    rules: SizeRules, workload: Sizes | None, most_bytes: int, first: Sizes = MappingProxyType({})
) -> dict[str, int] | None:
    """The base sizes; None: no sizes were found that keep the constraints. `first`: of some dims, where there is no
    workload."""
    if workload is None:
        sizes = rules.find_near({**dict(zip(rules.free, itertools.cycle(_FIRST), strict=False)), **first})
    else:
        sizes = rules.complete_sizes(workload)
        if sizes is None or any(sizes[name] != workload[name] for name in rules.dims):
            sizes = rules.find_near({name: min(workload[name], FLOOR) for name in rules.free})
    return None if sizes is None else shrink_sizes(rules, sizes, most_bytes)


def shrink_sizes(rules: SizeRules, sizes: dict[str, int], most_bytes: int) -> dict[str, int]:
    """The largest axis halved, again and again, as long as the tensors are too large and an axis can be halved."""
    while rules.count_bytes(sizes) > most_bytes:
        smaller = next(_list_halved(rules, sizes), None)
        if smaller is None:
            return sizes
        sizes = smaller
    return sizes


def _list_halved(rules: SizeRules, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    for name in sorted(rules.free, key=lambda name: -sizes[name]):
        completed = rules.complete_sizes({**sizes, name: sizes[name] // 2}) if sizes[name] >= 2 * FLOOR else None
        if completed is not None and rules.count_bytes(completed) < rules.count_bytes(sizes):
            yield completed


def list_shapes(rules: SizeRules, base: Sizes, most_bytes: int) -> dict[str, dict[str, int]]:
    """Shape sets to be tried beside the base, by name: the least sizes, odd ones, larger ones."""
    goal = {
        "least": dict.fromkeys(rules.free, 1),
        "odd": dict(zip(rules.free, itertools.cycle(_ODD), strict=False)),
        "larger": {name: base[name] * 3 // 2 + 1 for name in rules.free},
    }
    sets = {name: rules.find_near(sizes) for name, sizes in goal.items()}
    fitting = {name: sizes for name, sizes in sets.items() if sizes and rules.count_bytes(sizes) <= 2 * most_bytes}
    return _drop_repeated(fitting, base)


def list_bench(rules: SizeRules, base: Sizes, workloads: Iterable[Sizes], most_bytes: int) -> dict[str, dict[str, int]]:
    """The sets that are timed: the other workloads that fit, and sets of ours where these are too few."""
    sets: dict[str, dict[str, int]] = {}
    _add_sets(sets, rules, base, workloads, MOST_BENCH, BENCH_FACTOR * most_bytes)
    if len(sets) < LEAST_BENCH:
        _add_sets(sets, rules, base, _list_fillers(rules, base), LEAST_BENCH, BENCH_FACTOR * most_bytes)
    return sets if len(sets) >= LEAST_BENCH else {}


def _add_sets(
    sets: dict[str, dict[str, int]], rules: SizeRules, base: Sizes, sizes: Iterable[Sizes], limit: int, most_bytes: int
) -> None:
    """Those that keep the constraints as they are and fit, up to so many in all; the base is none of them."""
    for goal in sizes:
        completed = rules.complete_sizes(goal) if len(sets) < limit else None
        is_same = completed is not None and all(completed[name] == goal[name] for name in rules.free)
        if completed is not None and is_same and completed != dict(base) and rules.count_bytes(completed) <= most_bytes:
            sets.setdefault(name_sizes(completed), completed)


def _list_fillers(rules: SizeRules, base: Sizes) -> Iterator[Sizes]:
    """Small ones and large ones, odd ones among them."""
    for factor, odd in ((2, 0), (3, 1), (4, 0), (1, 1), (6, 0)):
        near = rules.find_near({name: base[name] * factor + odd for name in rules.free})
        if near is not None:
            yield near


def name_sizes(sizes: Sizes) -> str:
    """What a shape set is called that nobody has named: `of_7x128`."""
    return "of_" + "x".join(str(size) for size in sizes.values())[:37]


def _drop_repeated(sets: Mapping[str, dict[str, int]], base: Sizes) -> dict[str, dict[str, int]]:
    distinct: dict[str, dict[str, int]] = {}
    for name, sizes in sets.items():
        if sizes != dict(base) and sizes not in distinct.values():
            distinct[name] = sizes
    return distinct
