"""A conditional logit: the weights that make the observed choices likely, fitted by MAP from zero.

A decision is a set of candidates, each a bag of feature numbers and a fixed offset, and the one that was chosen. The
objective is concave, so the result does not depend on how it is climbed; L-BFGS with backtracking climbs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Index = NDArray[np.int64]
Objective = Callable[[Vector], tuple[float, Vector]]
MEMORY = 8  # of L-BFGS


@dataclass(frozen=True)
class Decision:
    """`features` of all candidates in a row; candidate i owns features[starts[i]:starts[i + 1]] (none is empty)."""

    features: Index
    starts: Index  # one per candidate
    offsets: Vector
    chosen: int


class Logit:
    """The observed decisions over `size` features, laid out to be fitted, also again with other importances."""

    def __init__(self, decisions: Sequence[Decision], size: int) -> None:
        self.size, self.empty = size, not decisions or not size
        if self.empty:
            return
        self.counts = np.array([len(decision.starts) for decision in decisions])
        self.features = np.concatenate([decision.features for decision in decisions])
        bases = np.cumsum([0] + [len(decision.features) for decision in decisions[:-1]])
        self.starts = np.concatenate([d.starts + base for d, base in zip(decisions, bases, strict=True)])
        self.offsets = np.concatenate([decision.offsets for decision in decisions])
        self.firsts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.chosen = self.firsts + np.array([decision.chosen for decision in decisions])
        lengths = np.diff(np.append(self.starts, len(self.features)))
        self.owner = np.repeat(np.arange(len(self.offsets)), lengths)

    def fit_weights(self, importance: Vector, precision: float, steps: int = 60) -> Vector:
        """The weights when decision i counts `importance[i]` times, under a normal prior of that precision."""
        weights = np.zeros(self.size)
        return weights if self.empty else _minimise_loss(self._build_objective(importance, precision), weights, steps)

    def _build_objective(self, importance: Vector, precision: float) -> Objective:
        """w -> (negative log posterior, gradient)."""
        spread = np.repeat(importance, self.counts)
        target = np.zeros(len(self.offsets))
        target[self.chosen] = importance

        def evaluate(weights: Vector) -> tuple[float, Vector]:
            scores = np.add.reduceat(weights[self.features], self.starts) + self.offsets
            scores -= np.repeat(np.maximum.reduceat(scores, self.firsts), self.counts)
            mass = np.exp(scores)
            total = np.add.reduceat(mass, self.firsts)
            loss = float(importance @ (np.log(total) - scores[self.chosen]))
            error = spread * mass / np.repeat(total, self.counts) - target
            gradient = np.bincount(self.features, weights=error[self.owner], minlength=self.size)
            return loss + 0.5 * precision * float(weights @ weights), gradient + precision * weights

        return evaluate


def _minimise_loss(evaluate: Objective, weights: Vector, steps: int) -> Vector:
    value, gradient = evaluate(weights)
    pairs: list[tuple[Vector, Vector]] = []
    for _ in range(steps):
        direction = _find_direction(gradient, pairs)
        slope = float(gradient @ direction)
        if slope > -1e-7:
            break
        rate = 1.0 if pairs else 1.0 / (1.0 + float(np.abs(gradient).max()))
        for _ in range(20):
            tried = weights + rate * direction
            after, new = evaluate(tried)
            if after <= value + 1e-4 * rate * slope:
                break
            rate *= 0.5
        else:
            break
        if float((new - gradient) @ (tried - weights)) > 1e-12:
            pairs = [*pairs[-(MEMORY - 1) :], (tried - weights, new - gradient)]
        converged = value - after < 1e-6 * max(1.0, abs(value))
        weights, value, gradient = tried, after, new
        if converged:
            break
    return weights


def _find_direction(gradient: Vector, pairs: Sequence[tuple[Vector, Vector]]) -> Vector:
    """The two-loop recursion."""
    direction = -gradient
    factors = []
    for step, change in reversed(pairs):
        factor = float(step @ direction) / float(step @ change)
        factors.append(factor)
        direction = direction - factor * change
    if pairs:
        step, change = pairs[-1]
        direction = direction * (float(step @ change) / float(change @ change))
    for (step, change), factor in zip(pairs, reversed(factors), strict=True):
        direction = direction + (factor - float(change @ direction) / float(step @ change)) * step
    return direction
