"""Statistics of interleaved pairs: the median of ratios, its interval, and how many pairs a wanted interval needs.

A pair is the time of a program and that of its partner, taken directly after one another, so that what slows the
machine slows both; its ratio is partner by program: above 1 the program is the faster one. Means are never used: one
interruption moves them by any amount.

The interval is a bootstrap in two levels, over processes and over the pairs of each, since a process's layout of
memory can favour one side for as long as it lives. Few processes say little of how much they differ: what was redrawn
is widened as Student's distribution is wider than the normal one. One process has an interval that holds for itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opsmith.measuring.intervals import Interval

RESAMPLES = 2000
_NORMAL = 1.959964  # 97.5 % quantile
_STUDENT = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)  # of 1, 2 ... degrees of freedom


def compare_times(times: Sequence[float], partner_times: Sequence[float]) -> list[float]:
    """The ratio of each pair. Raises ValueError unless both have a positive time for every pair.

    >>> compare_times([2.0, 3.0], [4.0, 3.0])
    [2.0, 1.0]
    """
    if len(times) != len(partner_times) or not all(0 < time < math.inf for time in (*times, *partner_times)):
        raise ValueError(f"compare_times: {len(times)} and {len(partner_times)} times; expected pairs of positive ones")
    return [partner / time for time, partner in zip(times, partner_times, strict=True)]


def estimate_median(processes: Sequence[Sequence[float]], seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The median of positive figures (ratios or times), by process, with its 95 % interval.

    Equal arguments give equal figures. Raises ValueError where there is no figure, or one is not positive and finite.
    """
    logs = [np.log(np.asarray(figures, dtype=np.float64)) for figures in processes if len(figures)]
    if not logs or not all(bool(np.isfinite(row).all()) for row in logs):
        raise ValueError(f"estimate_median: given {processes!r}; expected positive figures")
    value = float(np.median(np.concatenate(logs)))
    redrawn = value + (_redraw_medians(logs, seed, resamples) - value) * _widen_few(len(logs))
    low, high = np.quantile(redrawn, (0.025, 0.975)).tolist()
    return Interval(math.exp(value), math.exp(min(low, value)), math.exp(max(high, value)))


def _redraw_medians(logs: Sequence[NDArray[np.float64]], seed: int, resamples: int) -> NDArray[np.float64]:
    """Medians of as many processes drawn anew, and of each as many figures as the one with the fewest has."""
    generator = np.random.default_rng(seed)
    lengths = np.array([row.size for row in logs])
    starts = np.cumsum(lengths) - lengths
    chosen = generator.integers(len(logs), size=(resamples, len(logs), 1))
    places = generator.random((resamples, len(logs), int(lengths.min()))) * lengths[chosen]
    drawn = np.concatenate(logs)[starts[chosen] + places.astype(np.int64)]
    medians: NDArray[np.float64] = np.median(drawn.reshape(resamples, -1), axis=1)
    return medians


def _widen_few(processes: int) -> float:
    """The factor for so many processes; 1 for one alone, of whose kind nothing is known."""
    freedom = processes - 1
    return _STUDENT[freedom - 1] / _NORMAL if 0 < freedom <= len(_STUDENT) else 1.0
