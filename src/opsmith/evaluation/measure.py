"""How is an estimate made from the counts of several seeds? Values with bootstrap intervals over samples.

One seed gives a value and its redrawn ones (`learn.intervals`); several give the mean of their values, whose interval
is that of the mean of the redrawn ones: tasks and seeds are fixed, samples are drawn anew. Seeds stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opsmith.learn.intervals import Counts, interval, pass_at_k_of_all, resampled

Statistic = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]  # n [T], c [R, T] -> [R]


@dataclass(frozen=True)
class Drawn:
    """A statistic of one seed's samples, and the same of samples drawn anew."""

    value: float
    redrawn: NDArray[np.float64]
    tasks: int
    samples: int


@dataclass(frozen=True)
class Measured:
    """The mean over seeds with its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: tuple[float, ...]  # the value of each
    tasks: int
    samples: int  # of all seeds

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def drawn(counts: Counts, statistic: Statistic, seed: int) -> Drawn | None:
    """One seed's; `counts` are (n, c) by task. None without tasks."""
    if not counts:
        return None
    n, right = (np.array(column, dtype=np.int64) for column in zip(*counts, strict=True))
    value = float(statistic(n, right[None, :])[0])
    return Drawn(value, statistic(n, resampled(counts, seed)), len(counts), int(n.sum()))


def rate(n: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """pass@1: the mean success rate."""
    means: NDArray[np.float64] = (right / np.maximum(n, 1)).mean(axis=1)
    return means


def solved(n: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """pass@n: the share of tasks with a right answer."""
    shares: NDArray[np.float64] = (right > 0).mean(axis=1)
    return shares


def at(k: int) -> Statistic:
    """pass@k; every task needs k samples."""
    return lambda n, right: pass_at_k_of_all(n, right, k)


def over_seeds(parts: Sequence[Drawn | None]) -> Measured | None:
    """None when a seed has no value."""
    found = [part for part in parts if part is not None]
    if not found or len(found) < len(parts):
        return None
    values = tuple(part.value for part in found)
    return _measured(values, math.fsum(values) / len(values), _mean(found), found)


def ratio(parts: Sequence[Drawn | None], others: Sequence[Drawn | None]) -> Measured | None:
    """The mean of the ones over that of the others; None when there is nothing to divide by.

    Redrawn samples without any right answer leave their ratio out of the interval.
    """
    ones, twos = ([part for part in group if part is not None] for group in (parts, others))
    if not ones or not twos or (below := math.fsum(two.value for two in twos)) == 0:
        return None
    seeds = tuple(one.value / two.value for one, two in zip(ones, twos, strict=False) if two.value)
    over, under = _mean(ones), _mean(twos)
    value = math.fsum(one.value for one in ones) / len(ones) / (below / len(twos))
    return _measured(seeds, value, over[under > 0] / under[under > 0], [*ones, *twos])


def _mean(parts: Sequence[Drawn]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.mean([part.redrawn for part in parts], axis=0)
    return means


def _measured(
    seeds: tuple[float, ...], value: float, redrawn: NDArray[np.float64], parts: Sequence[Drawn]
) -> Measured | None:
    if not redrawn.size:
        return None
    low, high = interval(value, redrawn)
    return Measured(value, low, high, seeds, parts[0].tasks, sum(part.samples for part in parts))
