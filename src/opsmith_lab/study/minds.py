"""Known minds: what they do is planted, so that instruments can be proved on them.

A reciter has favourite places and looks at nothing. A searcher adapts in a share of its samples, and recites in the
others. A greedy mind stays beside the best point, a copier says earlier points again, whatever they were worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from opsmith_lab.study.trajectory import Array

Proposer = Callable[[Array, Array, np.random.Generator], Array]

ELITE = 5  # best points that a searcher proposes around
SPREAD = 0.5  # of their own spread, at least FLOOR of the range
FLOOR = 0.08
BESIDE = 0.04  # of the range: how far a greedy mind goes from the best point
COPIES = 0.88  # the share of exact copies that a small real model was seen to make
FAVOURITES = (0.5, 0.25, 0.75, 0.1, 0.9)  # shares of a range


def recite(shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """Favourite numbers along each axis, a little beside them."""
    numbers: Array = rng.choice(FAVOURITES, shares.shape[1]) + rng.normal(0, 0.03, shares.shape[1])
    return numbers


def adapt(share: float, shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """In that share of its samples about the best points so far, as wide as these lie; recited otherwise."""
    if rng.random() >= share or len(values) < ELITE:
        return recite(shares, values, rng)
    elite = shares[np.argsort(values, kind="stable")[:ELITE]]
    point: Array = rng.normal(elite.mean(axis=0), np.maximum(FLOOR, SPREAD * elite.std(axis=0)))
    return point


def stay_near(shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """Beside the best point so far, never on it."""
    if not len(values):
        return recite(shares, values, rng)
    point: Array = shares[np.argmin(values)] + rng.uniform(-BESIDE, BESIDE, shares.shape[1])
    return point


def copy_earlier(shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """An earlier point exactly, any of them; sometimes a recited one."""
    if len(values) and rng.random() < COPIES:
        point: Array = shares[rng.integers(len(shares))]
        return point
    return recite(shares, values, rng)


MINDS: Mapping[str, Proposer] = {
    "searcher-100": partial(adapt, 1.0),
    "searcher-30": partial(adapt, 0.3),
    "searcher-10": partial(adapt, 0.1),
    "reciter": recite,
    "greedy-mind": stay_near,
    "copier": copy_earlier,
}
