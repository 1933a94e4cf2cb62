"""Scalars of hidden draws: other numbers than the file's, near enough to mean the same.

A program that has a number of the file as a literal is right wherever nothing else is called. So a draw keeps the sign,
and moves a number by a factor of at most 8 and at least 2: one between 0 and 1 (an epsilon, a rate, a probability)
stays between them, a whole number stays whole. What `fixed` of the file names, 0, and the whole numbers 1 and -1, which
may be switches, stay.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from opsmith.problems.problem import Problem

Scalars = Mapping[str, int | float]

LEAST, FAR, MOST = 2.0, 4.0, 8.0  # factor by which a number is moved, or its odds where it lies between 0 and 1


def draw_scalars(problem: Problem, seed: int, least: float = LEAST) -> Scalars:
    """Every scalar of a problem, in its order; `least`: the smallest factor.

    >>> problem = Problem((), (), (), scalars={"eps": 1e-5, "axis": 1}, fixed=())
    >>> drawn = draw_scalars(problem, 1)
    >>> 1e-6 < drawn["eps"] < 1e-4, drawn["eps"] == 1e-5, drawn["axis"]
    (True, False, 1)
    """
    source = random.Random(seed)
    return {
        name: value if name in problem.fixed else _move_number(value, source, least)
        for name, value in problem.scalars.items()
    }


def _move_number(value: int | float, source: random.Random, least: float) -> int | float:
    factor = math.exp(source.choice((-1, 1)) * source.uniform(math.log(least), math.log(MOST)))
    magnitude = abs(value)
    if isinstance(value, int):
        return value if magnitude < 2 else int(math.copysign(max(2, round(magnitude * factor)), value))
    if not 0 < magnitude < math.inf:
        return value
    moved = magnitude * factor / (1 - magnitude + magnitude * factor) if magnitude < 1 else magnitude * factor
    return math.copysign(float(f"{moved:.4g}"), value)
