"""Metrics of programs that are right and faster: fast_p, means of ratios, spread, what a gained percent cost.

A ratio is the partner's time by the program's: above 1 the program is the faster one. None stands for a task without a
right program, or with one whose ratio cannot be said: it counts as a task, and never as fast. Intervals are over the
tasks (`results.intervals`). What the measuring errs by stands in each ratio's own interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.records import Usage
from opsmith.results.intervals import Estimate, bound_mean, estimate_share

THRESHOLDS = (0.5, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)

Ratios = Sequence[float | None]


@dataclass(frozen=True)
class FastShare:
    """The share of the tasks whose program is right and at least `threshold` times as fast as the partner."""

    threshold: float
    share: Estimate


@dataclass(frozen=True)
class GainCost:
    """What one per cent of gain cost; a figure is None where it is not known."""

    usd: float | None
    tokens: float
    measured_seconds: float | None


def estimate_fast_share(ratios: Ratios, threshold: float) -> Estimate | None:
    """fast_p at one threshold; None over no tasks.

    >>> estimate_fast_share([2.0, 1.0, None, 0.5], 1.0).value
    0.5
    """
    return estimate_share(sum(ratio is not None and ratio >= threshold for ratio in ratios), len(ratios))


def list_fast_shares(ratios: Ratios, thresholds: Sequence[float] = THRESHOLDS) -> tuple[FastShare, ...]:
    """The curve; empty over no tasks."""
    shares = ((threshold, estimate_fast_share(ratios, threshold)) for threshold in thresholds)
    return tuple(FastShare(threshold, share) for threshold, share in shares if share is not None)


def estimate_mean_ratio(ratios: Ratios, is_geometric: bool = False) -> Estimate | None:
    """The mean of the ratios that can be said.

    >>> print(estimate_mean_ratio([4.0, 1.0, None], is_geometric=True))
    2.000 (n = 2)
    """
    figures = [ratio for ratio in ratios if ratio is not None]
    return Estimate(*bound_mean([figures], is_geometric), len(figures), len(figures)) if figures else None


def choose_harder_partner(ratios: Sequence[float | None]) -> float | None:
    """The ratio to the fastest of several partners: the least one; None where none of them can be said."""
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def measure_spread(values: Sequence[float]) -> float | None:
    """The coefficient of variation: standard deviation by mean; None of fewer than two values, or of a mean of 0.

    >>> round(measure_spread([1.0, 1.2, 1.4]), 4)
    0.1667
    """
    if len(values) < 2 or not (mean := math.fsum(values) / len(values)):
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / abs(mean)


def price_gain(gain: float | None, usage: Usage, measured_seconds: float | None) -> GainCost | None:
    """`gain`: a ratio. None where nothing was gained.

    >>> price_gain(1.5, Usage(1, 400, 100, 0, 2.0), 10.0)
    GainCost(usd=0.04, tokens=10.0, measured_seconds=0.2)
    """
    if gain is None or gain <= 1.0:
        return None
    per_cent = 100.0 * (gain - 1.0)
    usd = None if usage.cost_usd is None else usage.cost_usd / per_cent
    tokens = (usage.input_tokens + usage.output_tokens) / per_cent
    return GainCost(usd, tokens, None if measured_seconds is None else measured_seconds / per_cent)


def correct_within(first_right: Mapping[str, int | None], attempts: int) -> tuple[Estimate, ...]:
    """The share of the tasks that are right within 1, 2 ... `attempts` attempts; `first_right`: by task, the number of
    the first right attempt, from 1; None: none was right."""
    firsts = [math.inf if first is None else float(first) for first in first_right.values()]
    shares = (estimate_share(sum(first <= n for first in firsts), len(firsts)) for n in range(1, attempts + 1))
    return tuple(share for share in shares if share is not None)
