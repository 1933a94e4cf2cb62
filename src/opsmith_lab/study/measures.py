"""What a trajectory is like: how good, how wide, how long, how greedy, how often the same point again.

Each measure is a number for one trajectory, or None where it is not defined; `MEASURES` says what each one is, in the
words of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from opsmith_lab.study.trajectory import Array, Trajectory

NEAR = 0.05  # of each range: so near to the incumbent a proposal is greedy
CELLS = (10, 5)  # equal cells of two dimensions
MEASURES: Mapping[str, str] = {
    "best": "the smallest value after all evaluations, in the unit of the problem",
    "coverage": f"share of cells that hold a proposal: {CELLS[0]} x {CELLS[1]} equal cells in two dimensions, the 2^5 "
    "orthants about the centre in five",
    "length": "length of the way from proposal to proposal, in diameters of the domain (ranges scaled to 1)",
    "greed": f"share of proposals within {NEAR:.0%} of each range of the best point before them; the first one and "
    "exact copies are left out",
    "copies": "share of proposals after the first that equal an earlier one exactly",
    "lost": "share of evaluations that went to no point",
}


def measure_trajectory(trajectory: Trajectory) -> dict[str, float | None]:
    """Every measure of MEASURES."""
    best, greed = find_best_values(trajectory.values)[-1], measure_greed(trajectory)
    is_point = ~np.isnan(trajectory.values)
    shares = trajectory.shares[is_point]
    steps = np.linalg.norm(np.diff(shares, axis=0), axis=1)
    later = int(is_point.sum()) - 1
    return {
        "best": None if math.isnan(best) else float(best),
        "coverage": measure_coverage(shares),
        "length": float(steps.sum() / math.sqrt(trajectory.domain.dimension)),
        "greed": greed,
        "copies": float(mark_copies(trajectory.points).sum() / later) if later > 0 else None,
        "lost": float(1 - is_point.mean()),
    }


def find_best_values(values: Array) -> Array:
    """After each evaluation the smallest value so far, [n]; NaN until there is one."""
    best: Array = np.fmin.accumulate(values)
    return best


def measure_coverage(shares: Array) -> float | None:
    """The share of cells that hold a point; None in other than two or five dimensions."""
    dimension = shares.shape[1]
    if dimension not in (2, 5):
        return None
    cells = np.array(CELLS if dimension == 2 else (2,) * dimension)
    places = np.minimum((shares * cells).astype(int), cells - 1)
    return len(np.unique(places, axis=0)) / int(np.prod(cells))


def measure_greed(trajectory: Trajectory) -> float | None:
    """Copies apart, the share of proposals near the incumbent, the first of the best points before; None of none."""
    shares, values, is_copy = trajectory.shares, trajectory.values, mark_copies(trajectory.points)
    incumbent: int | None = None
    near = considered = 0
    for number, value in enumerate(values):
        if math.isnan(value):
            continue
        if incumbent is not None and not is_copy[number]:
            considered += 1
            near += bool(np.all(np.abs(shares[number] - shares[incumbent]) <= NEAR))
        if incumbent is None or value < values[incumbent]:
            incumbent = number
    return near / considered if considered else None


def mark_copies(points: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each point equals an earlier one exactly; a row of NaN equals none."""
    seen: set[tuple[float, ...]] = set()
    marks = []
    for row in map(tuple, points.tolist()):
        marks.append(row in seen)
        if not any(map(math.isnan, row)):
            seen.add(row)
    return np.array(marks, dtype=bool)
