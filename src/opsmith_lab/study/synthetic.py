"""Synthetic problems in two dimensions, of a fixed generator: the same functions on every machine, known by their hash.

Each is a tilted bowl, some wells of various width and depth, and a ripple, on [0, 10] x [0, 10]. Numbers come from
Python's Mersenne Twister alone, whose stream is part of the language.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from opsmith_lab.study.trajectory import Array, BlackBox, Domain

NUMBER = 100
DOMAIN = Domain((0.0, 0.0), (10.0, 10.0))


@dataclass(frozen=True)
class Surface:
    """The numbers of one function."""

    centre: tuple[float, float]
    slopes: tuple[float, float]  # of the bowl, along each axis
    wells: tuple[tuple[float, float, float, float], ...]  # x, y, width, depth
    ripple: tuple[float, float, float]  # height, waves along each axis

    def evaluate(self, points: Array) -> Array:
        x, y = points[:, 0], points[:, 1]
        total = self.slopes[0] * (x - self.centre[0]) ** 2 + self.slopes[1] * (y - self.centre[1]) ** 2
        for a, b, width, depth in self.wells:
            total = total - depth * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
        height, along_x, along_y = self.ripple
        values: Array = total + height * np.sin(along_x * x) * np.sin(along_y * y)
        return values


def draw_surfaces(number: int = NUMBER, seed: int = 0) -> tuple[Surface, ...]:
    """So many functions; the first ones of a longer list are those of a shorter one."""
    rng = random.Random(f"opsmith study1 {seed}")

    def draw(low: float, high: float) -> float:
        return low + (high - low) * rng.random()

    surfaces = []
    for _ in range(number):
        centre, slopes = (draw(1, 9), draw(1, 9)), (10 ** draw(-2, -0.5), 10 ** draw(-2, -0.5))
        wells = tuple(
            (draw(0, 10), draw(0, 10), 10 ** draw(-0.4, 0.5), draw(0.5, 4)) for _ in range(1 + int(draw(0, 8)))
        )
        surfaces.append(Surface(centre, slopes, wells, (draw(0, 0.4), draw(1, 4), draw(1, 4))))
    return tuple(surfaces)


def hash_surfaces(surfaces: Sequence[Surface]) -> str:
    """Of all numbers, rounded to what no machine's `pow` disagrees on, so that a page can say which they were."""
    rounded = json.loads(json.dumps([asdict(each) for each in surfaces]), parse_float=lambda text: f"{float(text):.9g}")
    return hashlib.sha256(json.dumps(rounded).encode()).hexdigest()


def list_synthetic(number: int = NUMBER, seed: int = 0) -> tuple[BlackBox, ...]:
    """The functions as problems."""
    digits = len(str(number - 1))
    return tuple(
        BlackBox(f"synthetic_{place:0{digits}}", "synthetic", DOMAIN, surface.evaluate)
        for place, surface in enumerate(draw_surfaces(number, seed))
    )
