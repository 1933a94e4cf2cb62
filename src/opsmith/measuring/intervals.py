"""Positive figures with 95 % intervals, and what becomes of the intervals when figures are multiplied and averaged.

Times and ratios err by factors, so that everything is done on logarithms: the ratio of b to a is as uncertain as that
of a to b. Figures that are combined are taken as independent; the halves of their intervals add as squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A positive figure and the ends of its 95 % interval, in one unit."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        figures = (self.low, self.value, self.high)
        if not all(map(math.isfinite, figures)) or not 0 < self.low <= self.value <= self.high:
            raise ValueError(f"Interval: given low, value, high {figures}; expected positive numbers that do not fall")

    def contains(self, figure: float) -> bool:
        return self.low <= figure <= self.high

    def scale_by(self, factor: float) -> Interval:
        """The same in another unit; `factor` is exact."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def widen_by(self, share: float) -> Interval:
        """The same, less certain by a share of itself on either side."""
        return Interval(self.value, self.low / (1 + share), self.high * (1 + share))

    def invert(self) -> Interval:
        """The reciprocal: of a time a rate, of a ratio the other side's."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low)

    def __str__(self) -> str:
        """A figure that is counted has no interval."""
        return f"{self.value:.3f}" + (f" [{self.low:.3f}, {self.high:.3f}]" if self.low < self.high else "")


def chain_ratios(first: Interval, second: Interval) -> Interval:
    """The ratio of a to c from those of a to b and of b to c, which were measured apart.

    >>> print(chain_ratios(Interval(2.0, 1.9, 2.1), Interval(3.0, 3.0, 3.0)))
    6.000 [5.700, 6.300]
    """
    return _combine_logs((first, second), 1.0)


def average_ratios(ratios: Sequence[Interval]) -> Interval | None:
    """The geometric mean over problems, None over none. Its interval is of the measuring: other problems would have
    other ratios, of which it says nothing.

    >>> print(average_ratios([Interval(4.0, 4.0, 4.0), Interval(1.0, 0.9, 1.2)]))
    2.000 [1.897, 2.191]
    """
    return _combine_logs(ratios, 1 / len(ratios)) if ratios else None


def _combine_logs(figures: Sequence[Interval], weight: float) -> Interval:
    """exp of the weighted sum of logarithms."""
    value = weight * math.fsum(math.log(figure.value) for figure in figures)
    below = weight * math.hypot(*(math.log(figure.value / figure.low) for figure in figures))
    above = weight * math.hypot(*(math.log(figure.high / figure.value) for figure in figures))
    return Interval(math.exp(value), math.exp(value - below), math.exp(value + above))
