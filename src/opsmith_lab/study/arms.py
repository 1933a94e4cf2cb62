"""The one protocol of all that search: asked for a point, told its value, as often as there are evaluations.

An arm that asks a chat model gives an `Enquiry` in place of a point until it has its answer. Arms are deterministic in
their seed and the answers that they are given, so that a search which was stopped is walked again and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from opsmith_lab.study.trajectory import Array, BlackBox, Domain, Point, Trajectory

BUDGET = 50  # evaluations of a search


@dataclass(frozen=True)
class Enquiry:
    """What a chat model is asked before the arm can propose."""

    system: str
    user: str


class SearchArm(Protocol):
    """A search over one domain that is under way."""

    def ask(self) -> Point | Enquiry | None:
        """The next proposal, within the domain; None: none came, which takes the evaluation all the same."""
        ...

    def tell(self, value: float) -> None:
        """The value of the point that `ask` gave; NaN of none."""
        ...


@runtime_checkable
class ChatArm(SearchArm, Protocol):
    """A search that asks a chat model."""

    def hear_reply(self, text: str) -> None:
        """The answer to the last enquiry."""
        ...


class HistoryArm:
    """Proposals from all points and values so far, in shares of the ranges, by a function of them."""

    def __init__(
        self, domain: Domain, seed: int, propose: Callable[[Array, Array, np.random.Generator], Array]
    ) -> None:
        self._domain, self._propose = domain, propose
        self._rng = np.random.default_rng(seed)
        self._shares, self._values = np.empty((0, domain.dimension)), np.empty(0)

    def ask(self) -> Point:
        shares = np.clip(self._propose(self._shares, self._values, self._rng), 0.0, 1.0)
        self._shares = np.vstack([self._shares, shares])
        return self._domain.from_unit(shares)

    def tell(self, value: float) -> None:
        self._values = np.append(self._values, value)


def search_box(box: BlackBox, arm: SearchArm, budget: int = BUDGET) -> Trajectory:
    """The whole search of an arm that asks no model."""
    points, values = np.full((budget, box.domain.dimension), np.nan), np.full(budget, np.nan)
    for place in range(budget):
        proposal = arm.ask()
        if isinstance(proposal, Enquiry):
            raise TypeError("search_box: given an arm that asks a model; expected one that proposes by itself")
        if proposal is not None:
            points[place] = proposal
            values[place] = box.evaluate(points[place : place + 1])[0]
        arm.tell(float(values[place]))
    return Trajectory(box.domain, points, values)
