"""Are the tests honest, and from how many problems on do they see anything? By repetition with a fixed seed.

A null rate is how often a test finds something where there is nothing: 5 % is what it promises. A power curve is how
often it finds what was planted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opsmith.report.record import TEXT, DataTable
from opsmith.report.rendering import COLUMNS
from opsmith_lab.evaluation.analysis import Chart
from opsmith_lab.evaluation.permutation import Array, PermutationResult, permute_columns, permute_signs

LEVEL = 0.05
REPETITIONS = 2000
HONEST = (0.035, 0.065)  # where a null rate of 2,000 repetitions is expected, of mid-p


@dataclass(frozen=True)
class NullRate:
    """How often p was below LEVEL where nothing was to be found."""

    rate: float
    repetitions: int
    arrangements: int  # of the smallest of the tests

    @property
    def is_honest(self) -> bool:
        return HONEST[0] <= self.rate <= HONEST[1]


@dataclass(frozen=True)
class PowerPoint:
    """How often p was below LEVEL with so many problems."""

    problems: int
    power: float


Curves = Mapping[str, Sequence[PowerPoint]]  # by what was to be found


def tabulate_power(curves: Curves, what: str, problems: str) -> DataTable:
    """A line for each curve, by numbers of problems, or what these are called."""
    sizes = sorted({point.problems for curve in curves.values() for point in curve})
    powers = {name: {point.problems: f"{point.power:.2f}" for point in curve} for name, curve in curves.items()}
    rows = [[name, *map(own.get, sizes)] for name, own in powers.items()]
    return DataTable(
        f"Power: share with p < {LEVEL}, by {problems}", dict.fromkeys((what, *map(str, sizes)), TEXT), rows
    )


def draw_power(curves: Curves, problems: str) -> Chart:
    """The same as a figure."""
    points = [
        {"x": point.problems, "y": point.power, "series": name} for name, curve in curves.items() for point in curve
    ]
    words = {"title": f"From how many {problems} on is it found?", "x_title": problems}
    options = {"y_title": f"share with p < {LEVEL}", "y_domain": [0, 1], "log_x": True, "width": COLUMNS}
    return Chart("lines", points, {**words, **options})


def find_null_rate(
    draw_test: Callable[[np.random.Generator], PermutationResult], repetitions: int = REPETITIONS, seed: int = 0
) -> NullRate:
    """Of a test on data that `draw_test` draws anew each time, with nothing in it."""
    rng = np.random.default_rng(seed)
    results = [draw_test(rng) for _ in range(repetitions)]
    rate = sum(result.p < LEVEL for result in results) / repetitions
    return NullRate(rate, repetitions, min(result.arrangements for result in results))


def find_power_of_ranks(table: Array, sizes: Sequence[int], repetitions: int = 200, seed: int = 0) -> list[PowerPoint]:
    """Of the test of adaptation on so many of the problems of a table of `rank_proposals`, drawn anew each time."""
    rng = np.random.default_rng(seed)

    def draw_test(size: int) -> PermutationResult:
        chosen = rng.choice(len(table), size, replace=False)
        return permute_columns([table[np.ix_(chosen, chosen)]], rng)

    return list(_list_power(draw_test, [size for size in sizes if size <= len(table)], repetitions))


def find_power_of_differences(
    differences: Sequence[float], sizes: Sequence[int], repetitions: int = 200, seed: int = 0
) -> list[PowerPoint]:
    """Of the paired test of signs on so many of the problems, drawn anew each time."""
    rng = np.random.default_rng(seed)
    values = np.array(differences)

    def draw_test(size: int) -> PermutationResult:
        return permute_signs(rng.choice(values, size, replace=False).tolist(), rng)

    return list(_list_power(draw_test, [size for size in sizes if size <= len(values)], repetitions))


def _list_power(
    draw_test: Callable[[int], PermutationResult], sizes: Sequence[int], repetitions: int
) -> Iterator[PowerPoint]:
    for size in sizes:
        below = sum(draw_test(size).p < LEVEL for _ in range(repetitions))
        yield PowerPoint(size, below / repetitions)
