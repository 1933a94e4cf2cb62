"""What is searched and what a search left: black boxes, their domains, and trajectories.

Points are arrays [n, d], values [n]; smaller values are better. A proposal that was no point is a row of NaN with the
value NaN: it took its evaluation and has no place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = tuple[float, ...]


@dataclass(frozen=True)
class Domain:
    """A box of points, its corners in the units of the axes."""

    lower: Point
    upper: Point

    def __post_init__(self) -> None:
        if len(self.lower) != len(self.upper) or not all(a < b for a, b in zip(self.lower, self.upper, strict=True)):
            raise ValueError(f"Domain: given {self.lower} to {self.upper}; expected lower < upper along each axis")

    @property
    def dimension(self) -> int:
        return len(self.lower)

    def contains(self, point: Sequence[float]) -> bool:
        return all(a <= x <= b for a, x, b in zip(self.lower, point, self.upper, strict=True))

    def to_unit(self, points: Array) -> Array:
        """In shares of each range: [0, 1] along each axis."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        shares: Array = (points - lower) / (upper - lower)
        return shares

    def from_unit(self, shares: Array) -> Point:
        """One point from shares of the ranges; never outside the box, whatever rounding does."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return tuple(np.clip(lower + shares * (upper - lower), lower, upper).tolist())


@dataclass(frozen=True)
class BlackBox:
    """A function to be made small, of which a search is told nothing but the domain."""

    name: str
    collection: str  # the set that it is of
    domain: Domain
    evaluate: Callable[[Array], Array]  # [n, d] -> [n]; the same on every call
    unit: str = ""  # of its value
    axes: tuple[str, ...] = ()  # of each axis name and unit, for readers only


@dataclass(frozen=True)
class Trajectory:
    """The proposals of one search, in their order."""

    domain: Domain
    points: Array  # [n, d], in the units of the axes
    values: Array  # [n]

    @property
    def shares(self) -> Array:
        """The points in shares of the ranges, [n, d]."""
        return self.domain.to_unit(self.points)
