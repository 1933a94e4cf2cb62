"""Do the values that a search is told change what it proposes? The test that tells searching from reciting.

Proposals that ignore the values are as good on any problem of the same domain as on their own. So every problem is
asked what all trajectories would have been worth there; each trajectory's mean rank on its own problem is compared
with that of the same trajectories dealt out to the problems anew (`permutation.permute_columns`). Valid where all
problems of a stratum look alike to who proposes (same domain, same words) and each trajectory has its own seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opsmith_lab.study.trajectory import Array, BlackBox


def rank_proposals(boxes: Sequence[BlackBox], points: Sequence[Array]) -> Array:
    """Mean rank of the proposals of trajectory j on problem i, [i, j]: from 0, the best of all, to 1.

    points: of the trajectory on each of the boxes, [n, d]; rows of NaN are left out
    """
    if len({box.domain for box in boxes}) > 1:
        raise ValueError("rank_proposals: given several domains; expected problems that look alike")
    real = [own[~np.isnan(own).any(axis=1)] for own in points]
    owner = np.repeat(np.arange(len(real)), [len(own) for own in real])
    counts = np.bincount(owner, minlength=len(real))
    together = np.concatenate(real)
    table = np.full((len(boxes), len(real)), 0.5)  # a trajectory without a point says nothing
    for row, box in zip(table, boxes, strict=True):
        sums = np.bincount(owner, weights=rank_values(box.evaluate(together)), minlength=len(real))
        row[counts > 0] = (sums / np.maximum(1, counts))[counts > 0]
    return table


def rank_values(values: Array) -> Array:
    """Ranks from 0 to 1, the smallest first; ties share their mean rank.

    >>> rank_values(np.array([3.0, 1.0, 3.0])).tolist()
    [0.75, 0.0, 0.75]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts + 1) / 2
    ranks: Array = mean_ranks[places] / max(1, len(values) - 1)
    return ranks


def find_gains(table: Array) -> Array:
    """By problem, how much lower the mean rank of its own trajectory is than that of the others, [i]."""
    others = (table.sum(axis=1) - table.diagonal()) / max(1, len(table) - 1)
    gains: Array = others - table.diagonal()
    return gains
