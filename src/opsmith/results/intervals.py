"""Intervals of estimates, of 95 %. What they are over is what could have come out otherwise; who shows one names it.

- A proportion (right samples of a task, tasks solved): Wilson's, J. Am. Stat. Assoc. 22 (1927). 0 of 64 may be 0.05.
- pass@k over tasks, and differences of it: over samples, the tasks fixed; Wilson's with an effective number of trials,
  as surveys have it: Dean and Pagano, J. Surv. Stat. Methodol. 3 (2015). Differences: Newcombe, Statistics in Medicine
  17 (1998). They are given a run's rounds as these were.
- Means over tasks: the percentile bootstrap, which draws tasks and seeds anew: Owen, Ann. Appl. Stat. 1 (2007). Fewer
  than FEWEST tasks have no interval. Of few seeds it understates what seeds do; fixed, they would do nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith.results.metrics import pass_at_k

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]  # figures: [seeds, tasks]

RESAMPLES = 2000
FEWEST = 5  # of what is drawn anew
Counts = Sequence[tuple[int, int]]  # (n, c) of each task: judged samples, right ones
Bounds = tuple[float, float, float]  # value, low, high
MeanBounds = tuple[float, float | None, float | None]
_Z = 1.959964  # 95 % of a normal distribution lie so many deviations around its mean


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval and how many tasks and samples stand behind it."""

    value: float
    low: float | None  # None, as high is: too few tasks for an interval
    high: float | None
    tasks: int
    samples: int

    def __format__(self, form: str) -> str:
        """`0.615 [0.538, 0.654]`; without an interval `0.615 (n = 3)`, with the number of tasks."""
        value, low, high = (format(end or 0.0, form or "z.3f") for end in (self.value, self.low, self.high))
        return f"{value} (n = {self.tasks})" if self.low is None else f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return format(self)


def bound_share(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share of n, which is above 0.

    >>> [round(end, 4) for end in bound_share(0, 64)]
    [0.0, 0.0566]
    """
    middle, half = share * n + _Z**2 / 2, _Z * math.sqrt(n * share * (1 - share) + _Z**2 / 4)
    low, high = ((middle + end) / (n + _Z**2) for end in (-half, half))
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def estimate_share(right: float, tasks: int) -> Estimate | None:
    """The share of tasks that are right; None without tasks."""
    return Estimate(right / tasks, *bound_share(right / tasks, tasks), tasks, tasks) if tasks else None


def estimate_pass_at_k(counts: Counts, k: int) -> Estimate | None:
    """pass@k over the tasks, its interval over samples; None without tasks, or when one has fewer than k samples.

    >>> print(estimate_pass_at_k([(4, 1), (4, 4)], k=1))
    0.625 [0.342, 0.843]
    """
    if not counts or any(n < max(k, 1) for n, _ in counts):
        return None
    return Estimate(*bound_pass_at([(n, c, k) for n, c in counts]), len(counts), sum(n for n, _ in counts))


def estimate_difference(
    counts: Mapping[str, tuple[int, int]], baseline: Mapping[str, tuple[int, int]], k: int
) -> Estimate | None:
    """pass@k of `counts` less that of `baseline` over the tasks of both, its interval over samples."""
    both = [task for task in counts if task in baseline]
    if not both or any(group[task][0] < max(k, 1) for group in (counts, baseline) for task in both):
        return None
    first, second = (bound_pass_at([(*group[task], k) for task in both]) for group in (counts, baseline))
    samples = sum(group[task][0] for group in (counts, baseline) for task in both)
    (value, low, high), (base, base_low, base_high) = first, second
    below, above = math.hypot(value - low, base_high - base), math.hypot(high - value, base - base_low)
    difference = value - base
    return Estimate(difference, difference - below, difference + above, len(both), samples)


def bound_pass_at(tasks: Sequence[tuple[int, int, int]]) -> Bounds:
    """The mean over tasks of pass@k, from (n, c, k) of each: Wilson's for as many trials as err as much together.

    A task has n / k trials of k samples; one right and one wrong trial are added where its error is estimated.
    """
    values, trials = [pass_at_k(n, c, k) for n, c, k in tasks], [n / k for n, _, k in tasks]
    shares = [(value * size + 1) / (size + 2) for value, size in zip(values, trials, strict=True)]
    value, share = (math.fsum(column) / len(tasks) for column in (values, shares))
    error = math.fsum(part * (1 - part) / size for part, size in zip(shares, trials, strict=True)) / len(tasks) ** 2
    low, high = bound_share(value, share * (1 - share) / error)
    return value, low, high


def bound_mean(table: Sequence[Sequence[float]], is_geometric: bool = False) -> MeanBounds:
    """The mean over tasks of their means over seeds, from [seeds][tasks]; not a number: a seed lacks the task.

    >>> bound_mean([[4.0, 1.0]], is_geometric=True)
    (2.0, None, None)
    """
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    figures = np.log(table) if is_geometric else np.array(table)
    figures = np.where(np.isnan(figures), np.nanmean(figures, axis=0), figures)
    value, low, high = bound_redrawn(float(figures.mean()), redraw_means(figures), figures.shape[1])
    if low is None or high is None or not is_geometric:
        return (math.exp(value) if is_geometric else value), low, high
    return math.exp(value), math.exp(low), math.exp(high)


def bound_redrawn(value: float, redrawn: Table, n: int) -> MeanBounds:
    """A value with the middle 95 % of what came of drawing n anew, extended to it; no interval of fewer than FEWEST."""
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    if n < FEWEST:
        return value, None, None
    low, high = (float(edge) for edge in np.quantile(redrawn, (0.025, 0.975)))
    return value, min(low, value), max(high, value)


def redraw_means(table: Table) -> Table:
    """Means of as many seeds and tasks drawn anew; the draws of tables of one size are the same, so that these pair."""
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    rng = np.random.default_rng(0)
    seeds, tasks = (rng.multinomial(size, np.full(size, 1 / size), RESAMPLES) / size for size in table.shape)
    means: Table = ((seeds @ table) * tasks).sum(axis=1)
    return means
