"""Estimates from the counts of several seeds: values with bootstrap intervals over samples.

One seed gives a value and its redrawn ones (`results.intervals`); several give the mean of their values, whose interval
is that of the mean of the redrawn ones: tasks and seeds are fixed, samples are drawn anew. Seeds stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opsmith.results.intervals import RESAMPLES, Counts, pass_at_k_of_all, percentile_interval, resample_counts

Statistic = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]  # n [T], c [R, T] -> [R]


@dataclass(frozen=True)
class SeedStatistic:
    """A statistic of one seed's samples, and the same of samples drawn anew."""

    value: float
    redrawn: NDArray[np.float64]
    tasks: int
    samples: int


@dataclass(frozen=True)
class MeanEstimate:
    """The mean over seeds with its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: tuple[float, ...]  # the value of each
    tasks: int
    samples: int  # of all seeds

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def draw_statistic(counts: Counts, statistic: Statistic, seed: int) -> SeedStatistic | None:
    """One seed's; `counts` are (n, c) by task. None without tasks."""
    if not counts:
        return None
    n, right = (np.array(column, dtype=np.int64) for column in zip(*counts, strict=True))
    value = float(statistic(n, right[None, :])[0])
    return SeedStatistic(value, statistic(n, resample_counts(counts, seed)), len(counts), int(n.sum()))


def mean_rate(n: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """pass@1: the mean success rate."""
    means: NDArray[np.float64] = (right / np.maximum(n, 1)).mean(axis=1)
    return means


def solved_share(n: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """pass@n: the share of tasks with a right answer."""
    shares: NDArray[np.float64] = (right > 0).mean(axis=1)
    return shares


def make_pass_at(k: int) -> Statistic:
    """pass@k; every task needs k samples."""
    return lambda n, right: pass_at_k_of_all(n, right, k)


def average_seeds(statistics: Sequence[SeedStatistic | None]) -> MeanEstimate | None:
    """None when a seed has no value."""
    present = [statistic for statistic in statistics if statistic is not None]
    if not present or len(present) < len(statistics):
        return None
    values = tuple(statistic.value for statistic in present)
    return _make_estimate(values, math.fsum(values) / len(values), _average_redrawn(present), present)


def divide_means(over: Sequence[SeedStatistic | None], under: Sequence[SeedStatistic | None]) -> MeanEstimate | None:
    """The mean of the first over that of the second; None when there is nothing to divide by.

    Redrawn samples without any right answer leave their ratio out of the interval.
    """
    tops, bases = ([statistic for statistic in group if statistic is not None] for group in (over, under))
    if not tops or not bases or (total := math.fsum(base.value for base in bases)) == 0:
        return None
    seeds = tuple(top.value / base.value for top, base in zip(tops, bases, strict=False) if base.value)
    redrawn, redrawn_bases = _average_redrawn(tops), _average_redrawn(bases)
    value = math.fsum(top.value for top in tops) / len(tops) / (total / len(bases))
    has_base = redrawn_bases > 0
    return _make_estimate(seeds, value, redrawn[has_base] / redrawn_bases[has_base], [*tops, *bases])


def average_tasks(seeds: Sequence[Mapping[str, float]], is_geometric: bool = False) -> MeanEstimate | None:
    """The mean over tasks of each task's mean over seeds. None without a figure.

    >>> average_tasks([{"a": 1.0, "b": 4.0}, {"a": 1.0, "b": 4.0}], is_geometric=True).value
    2.0
    """
    transform, back = (math.log, math.exp) if is_geometric else (float, float)
    by_task: dict[str, list[float]] = {}
    for figures in seeds:
        for task, figure in figures.items():
            by_task.setdefault(task, []).append(transform(figure))
    if not by_task:
        return None
    means = np.array([math.fsum(values) / len(values) for values in by_task.values()])
    own = tuple(back(math.fsum(map(transform, seed.values())) / len(seed)) for seed in seeds if seed)
    value = back(math.fsum(means.tolist()) / len(means))
    low, high = percentile_interval(value, _redraw_means(means, back))
    return MeanEstimate(value, low, high, own, len(by_task), 0)


def _average_redrawn(statistics: Sequence[SeedStatistic]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.mean([statistic.redrawn for statistic in statistics], axis=0)
    return means


def _make_estimate(
    seeds: tuple[float, ...], value: float, redrawn: NDArray[np.float64], statistics: Sequence[SeedStatistic]
) -> MeanEstimate | None:
    if not redrawn.size:
        return None
    low, high = percentile_interval(value, redrawn)
    return MeanEstimate(
        value, low, high, seeds, statistics[0].tasks, sum(statistic.samples for statistic in statistics)
    )


def _redraw_means(means: NDArray[np.float64], back: Callable[[float], float]) -> NDArray[np.float64]:
    drawn = np.random.default_rng(0).integers(0, len(means), size=(RESAMPLES, len(means)))
    return np.array([back(mean) for mean in means[drawn].mean(axis=1).tolist()])
