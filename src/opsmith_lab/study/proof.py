"""The instruments, proved on known minds: null rates, power curves, and who is told apart from whom.

A pool has several trajectories of each mind on each synthetic problem. Null rates of paired tests draw problems, and
for each two of the trajectories that were made there; those of adaptation search anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from opsmith_lab.evaluation.permutation import PermutationResult, permute_columns, permute_signs
from opsmith_lab.evaluation.repetition import (
    REPETITIONS,
    NullRate,
    PowerPoint,
    find_null_rate,
    find_power_of_differences,
    find_power_of_ranks,
)
from opsmith_lab.study.adaptation import find_gains, rank_proposals
from opsmith_lab.study.arms import HistoryArm, search_box, seed_search
from opsmith_lab.study.measures import measure_trajectory
from opsmith_lab.study.minds import MINDS
from opsmith_lab.study.synthetic import list_synthetic
from opsmith_lab.study.trajectory import Array, BlackBox

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)  # numbers of problems
COMPARED = ("gain", "coverage", "length", "greed", "copies")
NULL_PROBLEMS = 20  # of one repetition: 2^20 arrangements of signs, less ties
NULL_SEARCHES = 10, 20  # of one repetition: problems, and proposals of each search
IGNORANT = ("reciter", "copier")  # what they propose is not changed by values


@dataclass(frozen=True)
class PairTest:
    """Two arms on the same problems, by one measure: that of the first less that of the second."""

    first: str
    second: str
    measure: str
    result: PermutationResult


@dataclass(frozen=True)
class Searches:
    """Trajectories of one mind: `copies` of them on each of the problems."""

    ranks: Array  # of the first copy, the table of `rank_proposals`
    measures: Mapping[str, Array]  # by measure [copies, problems]; NaN: not defined


@dataclass(frozen=True)
class InstrumentProof:
    """What the instruments say of the minds."""

    adaptation: Mapping[str, PermutationResult]  # by mind, on all problems
    means: Mapping[str, Mapping[str, float]]  # by mind and measure
    null_rates: Mapping[str, NullRate]  # by what was tested
    power: Mapping[str, Sequence[PowerPoint]]  # by what was to be found
    apart: Sequence[PairTest]  # of different minds
    equal: Sequence[PairTest]  # of the same mind with other seeds


def make_pool(mind: str, boxes: Sequence[BlackBox], copies: int) -> Searches:
    """Searches of a mind, each with a seed of its own."""
    tables, rows = [], []
    for number in range(copies):
        trajectories = [
            search_box(box, HistoryArm(box.domain, seed_search(mind, box.name, number), MINDS[mind])) for box in boxes
        ]
        tables.append(rank_proposals(boxes, [each.points for each in trajectories]))
        measured = [measure_trajectory(each) for each in trajectories]
        gains = {"gain": find_gains(tables[-1])}
        rows.append(gains | {name: np.array([row[name] for row in measured], float) for name in COMPARED[1:]})
    return Searches(tables[0], {name: np.array([row[name] for row in rows]) for name in COMPARED})


def prove_instruments(problems: int = 96, copies: int = 12, repetitions: int = REPETITIONS) -> InstrumentProof:
    """All of it, from a fixed seed; two minutes for the default numbers."""
    boxes = list_synthetic(problems)
    pools = {mind: make_pool(mind, boxes, copies) for mind in MINDS}
    rng = np.random.default_rng(0)
    nulls = {f"adaptation of {mind}": _search_anew(mind, boxes) for mind in IGNORANT}
    nulls |= {f"{name} of {mind}": _test_equals(pools[mind], name) for mind, name in _EQUALS}
    power = {
        f"adaptation of {mind}": find_power_of_ranks(pools[mind].ranks, SIZES) for mind in MINDS if mind not in IGNORANT
    }
    for first, second, name in _DIFFERENCES:
        differences = pools[first].measures[name][0] - pools[second].measures[name][0]
        power[f"{name}, {first} and {second}"] = find_power_of_differences(differences.tolist(), SIZES)
    return InstrumentProof(
        {mind: permute_columns([pool.ranks], rng) for mind, pool in pools.items()},
        {mind: {name: float(np.nanmean(rows)) for name, rows in pool.measures.items()} for mind, pool in pools.items()},
        {what: find_null_rate(draw, repetitions) for what, draw in nulls.items()},
        power,
        [each for a, b in combinations(MINDS, 2) for each in _compare_pools((a, pools[a], 0), (b, pools[b], 0), rng)],
        [each for a in MINDS for each in _compare_pools((a, pools[a], 0), (a, pools[a], 1), rng)],
    )


_EQUALS = (("searcher-100", "greed"), ("searcher-30", "coverage"), ("copier", "copies"), ("reciter", "gain"))
_DIFFERENCES = (
    ("greedy-mind", "searcher-100", "greed"),
    ("copier", "reciter", "copies"),
    ("searcher-100", "searcher-30", "gain"),
    ("searcher-30", "searcher-10", "gain"),
    ("searcher-10", "reciter", "gain"),
)

_Draw = Callable[[np.random.Generator], PermutationResult]


def _search_anew(mind: str, boxes: Sequence[BlackBox]) -> _Draw:
    problems, budget = NULL_SEARCHES

    def draw_test(rng: np.random.Generator) -> PermutationResult:
        chosen = [boxes[place] for place in rng.choice(len(boxes), problems, replace=False)]
        seeds = rng.integers(0, 2**32, problems).tolist()
        arms = [HistoryArm(box.domain, seed, MINDS[mind]) for box, seed in zip(chosen, seeds, strict=True)]
        searches = [search_box(box, arm, budget) for box, arm in zip(chosen, arms, strict=True)]
        return permute_columns([rank_proposals(chosen, [each.points for each in searches])], rng)

    return draw_test


def _test_equals(pool: Searches, name: str) -> _Draw:
    rows = pool.measures[name]

    def draw_test(rng: np.random.Generator) -> PermutationResult:
        chosen = rng.choice(rows.shape[1], NULL_PROBLEMS, replace=False)
        pairs = np.array([rng.choice(len(rows), 2, replace=False) for _ in chosen])
        return permute_signs((rows[pairs[:, 0], chosen] - rows[pairs[:, 1], chosen]).tolist(), rng)

    return draw_test


def _compare_pools(
    first: tuple[str, Searches, int], second: tuple[str, Searches, int], rng: np.random.Generator
) -> list[PairTest]:
    comparisons = []
    for name in COMPARED:
        differences = first[1].measures[name][first[2]] - second[1].measures[name][second[2]]
        result = permute_signs(differences[~np.isnan(differences)].tolist(), rng)
        comparisons.append(PairTest(first[0], second[0], name, result))
    return comparisons
