"""Intervals of estimates. Percentile bootstrap over samples; Efron and Tibshirani, An Introduction to the Bootstrap.

The tasks are fixed and the samples are drawn again, as right answers out of n at each task's own rate. A run's later
rounds depend on its earlier ones; the intervals are given the rounds as they were. They say nothing about other seeds.
Samples drawn again may lose a task's only right one and never gain a first one, so those of pass@n reach down only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2000
Counts = Sequence[tuple[int, int]]  # (n, c) of each task: judged samples, right ones


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval and how many tasks and samples stand behind it."""

    value: float
    low: float
    high: float
    tasks: int
    samples: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate_pass_at_k(counts: Counts, k: int, seed: int = 0, resamples: int = RESAMPLES) -> Estimate | None:
    """pass@k over the tasks, with its interval; None without tasks, or when one has fewer than k samples.

    >>> estimate_pass_at_k([(4, 1), (4, 4)], k=1).value
    0.625
    """
    if not counts or any(n < k for n, _ in counts):
        return None
    n, right = _split_counts(counts)
    value = float(pass_at_k_of_all(n, right[None, :], k)[0])
    low, high = percentile_interval(value, pass_at_k_of_all(n, resample_counts(counts, seed, resamples), k))
    return Estimate(value, low, high, len(counts), int(n.sum()))


def estimate_difference(
    counts: Mapping[str, tuple[int, int]], baseline: Mapping[str, tuple[int, int]], k: int, seed: int = 0
) -> Estimate | None:
    """pass@k of `counts` less that of `baseline` over the tasks of both: a paired comparison, by task."""
    both = [task for task in counts if task in baseline]
    first, second = [counts[task] for task in both], [baseline[task] for task in both]
    if not both or any(n < k for n, _ in (*first, *second)):
        return None
    (n, right), (m, other_right) = _split_counts(first), _split_counts(second)
    drawn = pass_at_k_of_all(n, resample_counts(first, seed), k) - pass_at_k_of_all(
        m, resample_counts(second, seed + 1), k
    )
    value = float((pass_at_k_of_all(n, right[None, :], k) - pass_at_k_of_all(m, other_right[None, :], k))[0])
    low, high = percentile_interval(value, drawn)
    return Estimate(value, low, high, len(both), int(n.sum() + m.sum()))


def percentile_interval(value: float, redrawn: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95 % of what was redrawn, extended to the value where redrawing falls short of it (pass@n does)."""
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    low, high = (float(edge) for edge in np.quantile(redrawn, (0.025, 0.975)))
    return min(low, value), max(high, value)


def resample_counts(counts: Counts, seed: int = 0, resamples: int = RESAMPLES) -> NDArray[np.int64]:
    """Right answers in as many samples drawn anew: [resamples, tasks]."""
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    n, right = _split_counts(counts)
    rates = right / np.maximum(n, 1)
    return np.random.default_rng(seed).binomial(n, rates, size=(resamples, len(counts)))


def _split_counts(counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    return np.array([n for n, _ in counts], dtype=np.int64), np.array([c for _, c in counts], dtype=np.int64)


def pass_at_k_of_all(n: NDArray[np.int64], right: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Mean over tasks of 1 - C(n - c, k) / C(n, k); `metrics.pass_at_k` for all resamples at once."""
    import numpy as np  # noqa: PLC0415 - most commands compute nothing

    values = np.empty(right.shape)
    for column, size in enumerate(n.tolist()):
        table = np.array([_pass_at_k_exactly(size, c, k) for c in range(size + 1)])
        values[:, column] = table[right[:, column]]
    means: NDArray[np.float64] = values.mean(axis=1)
    return means


def _pass_at_k_exactly(n: int, c: int, k: int) -> float:
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)
