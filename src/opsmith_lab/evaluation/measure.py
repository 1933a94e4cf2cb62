"""Estimates from several seeds: means over them, each with the interval that its comment names; seeds stand beside it.

Over samples: tasks and seeds are fixed (`results.intervals`).
Over tasks: Wilson's of what is counted by task, as if a task's seeds were one trial. Over tasks and seeds: both are
drawn anew; of two arms the same ones at once, so that what is hard for both arms alike is in no difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opsmith.results.intervals import (
    Bounds,
    Counts,
    Estimate,
    MeanBounds,
    bound_mean,
    bound_pass_at,
    bound_redrawn,
    bound_share,
    redraw_means,
)

Redrawn = NDArray[np.float64]
MarkTable = Sequence[Sequence[float]]  # [seeds][tasks]: 1 solved, 0 not
Marks = Mapping[str, float]  # by task: 1 where it is counted (it is solved, its gain is large), else 0


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """The mean over seeds with its 95 % interval; `samples`: of all seeds."""

    seeds: tuple[float, ...] = ()  # the value of each


def estimate_pass_at(seeds: Sequence[Counts], k: int | None) -> MeanEstimate | None:
    """pass@k, over samples; k None: of as many samples as each task has. None without tasks."""
    if not seeds or not all(seeds):
        return None
    return _describe_bounds(_bound_seeds(seeds, k), [_bound_seeds([counts], k)[0] for counts in seeds], seeds)


def divide_solved(over: Sequence[Counts], under: Sequence[Counts]) -> tuple[MeanEstimate | None, MeanEstimate | None]:
    """pass@n of one arm by that of another with the same seeds: paired, over tasks and seeds; and over samples.

    None, None: there is nothing to divide by.
    """
    marks = [[[float(right > 0) for _, right in counts] for counts in seeds] for seeds in (over, under)]
    paired = bound_ratio(*marks) if all(over) and over else None
    if paired is None:
        return None, None
    own = [sum(top) / sum(base) for top, base in zip(*marks, strict=True) if any(base)]
    both = [*over, *under]
    over_samples = divide_bounds(_bound_seeds(over, None), _bound_seeds(under, None))
    return _describe_bounds(paired, own, both), _describe_bounds(over_samples, own, both)


def subtract_marks(over: Sequence[Marks], under: Sequence[Marks]) -> MeanEstimate | None:
    """The share of one arm less that of another, of the seeds that both have: paired, over tasks and seeds."""
    pairs = list(zip(over, under, strict=False))
    if not pairs or not over[0]:
        return None
    tables = [[list(pair[side].values()) for pair in pairs] for side in (0, 1)]
    own = tuple((sum(top) - sum(base)) / len(top) for top, base in zip(*tables, strict=True))
    return MeanEstimate(*bound_difference(*tables), tasks=len(over[0]), samples=0, seeds=own)


def share_marks(seeds: Sequence[Marks], samples: int = 0) -> MeanEstimate | None:
    """The share of tasks that are counted, over tasks. None without a task."""
    own = [math.fsum(marks.values()) / len(marks) for marks in seeds if marks]
    if not own:
        return None
    value, tasks = math.fsum(own) / len(own), len({task for marks in seeds for task in marks})
    low, high = bound_share(value, tasks)
    return MeanEstimate(value, low, high, tasks, samples, tuple(own))


def average_tasks(seeds: Sequence[Mapping[str, float]], is_geometric: bool = False) -> MeanEstimate | None:
    """The mean over tasks of each task's mean over seeds, over tasks and seeds. None without a figure.

    >>> average_tasks([{"a": 1.0, "b": 4.0}, {"a": 1.0, "b": 4.0}], is_geometric=True).value
    2.0
    """
    present = [seed for seed in seeds if seed]
    tasks = list(dict.fromkeys(task for seed in present for task in seed))
    if not tasks:
        return None
    own = tuple(bound_mean([list(seed.values())], is_geometric)[0] for seed in present)
    table = [[seed.get(task, math.nan) for task in tasks] for seed in present]
    return MeanEstimate(*bound_mean(table, is_geometric), tasks=len(tasks), samples=0, seeds=own)


def average_shares(seeds: Sequence[Mapping[str, float]]) -> MeanEstimate | None:
    """The same of shares: where all are equal, which drawing them anew would take for certain, Wilson's interval."""
    mean = average_tasks(seeds)
    if mean is None or mean.low is None or mean.high is None or mean.high - mean.low > 1e-9:
        return mean
    low, high = bound_share(mean.value, mean.tasks)
    return replace(mean, low=low, high=high)


def _bound_seeds(seeds: Sequence[Counts], k: int | None) -> Bounds:
    """pass@k of all tasks of all seeds; a task without a judged sample counts as one whose only sample is wrong."""
    return bound_pass_at([(max(n, 1), right, k or max(n, 1)) for counts in seeds for n, right in counts])


def _describe_bounds(bounds: MeanBounds, own: Sequence[float], seeds: Sequence[Counts]) -> MeanEstimate:
    samples = sum(n for counts in seeds for n, _ in counts)
    return MeanEstimate(*bounds, tasks=len(seeds[0]), samples=samples, seeds=tuple(own))


def divide_bounds(over: Bounds, under: Bounds) -> Bounds:
    """The ratio of independent estimates, the second above 0: halves of logarithms add as squares."""
    (value, low, high), (base, base_low, base_high) = over, under
    if not low:
        return value / base, 0.0, high / base_low
    below = math.hypot(math.log(value / low), math.log(base_high / base))
    above = math.hypot(math.log(high / value), math.log(base / base_low))
    return value / base, value / base * math.exp(-below), value / base * math.exp(above)


def bound_ratio(over: MarkTable, under: MarkTable) -> MeanBounds | None:
    """The share of tasks that one arm solves by that of another, from [seeds][tasks] of both, 1 solved and 0 not.

    None where there is nothing to divide by; draws of which this is so are left out.

    >>> bound_ratio([[1.0, 1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0, 0.0]])
    (1.0, None, None)
    """
    if not (base := float(np.mean(under))):
        return None
    tops, bases = _redraw_arms(over, under)
    return bound_redrawn(float(np.mean(over)) / base, tops[bases > 0] / bases[bases > 0], len(over[0]))


def bound_difference(over: MarkTable, under: MarkTable) -> MeanBounds:
    """The share of tasks that one arm solves less that of another, as in `bound_ratio`."""
    tops, bases = _redraw_arms(over, under)
    return bound_redrawn(float(np.mean(np.subtract(over, under))), tops - bases, len(over[0]))


def _redraw_arms(over: MarkTable, under: MarkTable) -> tuple[Redrawn, Redrawn]:
    """Means of two arms, the same seeds and tasks of both drawn anew, a half solved task of each arm alone among them:
    that they solved the same ones is no proof that they always do (Agresti and Min, Statistics in Medicine 24 (2005)).
    """
    ends = np.tile([0.5, 0.0], (len(over), 1))
    return redraw_means(np.hstack([over, ends])), redraw_means(np.hstack([under, ends[:, ::-1]]))
