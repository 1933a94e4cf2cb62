"""Metrics of systems that solve tasks by sampling, of the paper's sections 5.1 and 6.2.

What is counted: a sample that was judged. `None` stands for a mean over nothing. Not covered: where the numbers come
from (`result`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k of n samples, c of them right, hold a right one: 1 - C(n - c, k) / C(n, k).

    Needs 1 <= k <= n and 0 <= c <= n. Computed as a product, so that no number grows large.
    >>> pass_at_k(n=4, c=1, k=2)
    0.5
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"pass_at_k: expected 1 <= k <= n and 0 <= c <= n; given n={n}, c={c}, k={k}")
    if n - c < k:
        return 1.0
    # C(n-c, k) / C(n, k) = prod (1 - k/i) for i in n-c+1 .. n = prod (1 - c/i) for i in n-k+1 .. n: the shorter one
    few, many = sorted((c, k))
    return 1.0 - math.prod(1.0 - many / i for i in range(n - few + 1, n + 1))


@dataclass(frozen=True)
class GroupScore:
    """A group of tasks, or all."""

    tasks: int
    solved: int
    pass_at_1: float | None  # mean success rate, 0 for an unsolved task
    pass_at_n: float | None  # share of solved tasks


def score_rates(rates: Sequence[float]) -> GroupScore:
    """`rates`: for each task the success rate of the round that solved it, 0 when none did."""
    solved = sum(rate > 0 for rate in rates)
    return GroupScore(len(rates), solved, mean_of(rates), mean_of([float(rate > 0) for rate in rates]))


def score_by_group(rates: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, GroupScore]:
    """`rates` and `groups` by task id; the groups in order of their first task."""
    members: dict[str, list[float]] = {}
    for task, rate in rates.items():
        members.setdefault(groups[task], []).append(rate)
    return {group: score_rates(task_rates) for group, task_rates in members.items()}


def mean_of(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
