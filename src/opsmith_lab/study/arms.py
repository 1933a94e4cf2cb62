"""The one protocol of all that search: asked for a point, told its value, as often as there are evaluations.

An arm that asks a chat model gives an `Enquiry` in place of a point until it has its answer. Arms are deterministic in
their seed and the answers that they are given, so that a search which was stopped is walked again and goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from opsmith_lab.study.trajectory import Array, BlackBox, Domain, Point, Trajectory

BUDGET = 50  # evaluations of a search


@dataclass(frozen=True)
class Enquiry:
    """What a chat model is asked before the arm can propose."""

    system: str
    user: str


@dataclass(frozen=True)
class Fault:
    """A reply that is no proposal: it is counted and shown, and never repaired."""

    kind: str
    reply: str


def seed_search(*parts: object) -> int:
    """A seed of its own for each search, the same everywhere."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


class SearchArm(Protocol):
    """A search over one domain that is under way."""

    def ask(self) -> Point | Enquiry | None:
        """The next proposal, within the domain; None: none came, which takes the evaluation all the same."""

    def tell(self, value: float) -> None:
        """The value of the point that `ask` gave; NaN of none."""


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


Script = Generator[Point | Enquiry | Fault | None, Any, None]


class ScriptedArm:
    """A search written as a generator: it yields a point, or None, and gets the value; an enquiry, and gets the reply.

    Faults that it yields are kept.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.faults: list[Fault] = []
        self._advance(None)

    def ask(self) -> Point | Enquiry | None:
        return self._step

    def tell(self, value: float) -> None:
        self._advance(value)

    def hear_reply(self, text: str) -> None:
        """The answer to the last enquiry."""
        self._advance(text)

    def _advance(self, answer: float | str | None) -> None:
        while isinstance(step := self._script.send(answer), Fault):
            self.faults.append(step)
            answer = None
        self._step = step


class Walk:
    """A search of a box as far as it has come: enquiries out, replies in."""

    def __init__(self, box: BlackBox, arm: SearchArm, budget: int = BUDGET) -> None:
        self._box, self._arm = box, arm
        self._points, self._values = np.full((budget, box.domain.dimension), np.nan), np.full(budget, np.nan)
        self._place = 0

    def go_on(self) -> Enquiry | None:
        """Evaluate proposals until a model must be asked; None: the search is over."""
        while self._place < len(self._values):
            proposal = self._arm.ask()
            if isinstance(proposal, Enquiry):
                return proposal
            if proposal is not None:
                self._points[self._place] = proposal
                self._values[self._place] = self._box.evaluate(self._points[self._place : self._place + 1])[0]
            self._place += 1
            self._arm.tell(float(self._values[self._place - 1]))
        return None

    @property
    def trajectory(self) -> Trajectory:
        return Trajectory(self._box.domain, self._points, self._values)


def search_box(box: BlackBox, arm: SearchArm, budget: int = BUDGET) -> Trajectory:
    """The whole search of an arm that asks no model."""
    walk = Walk(box, arm, budget)
    if walk.go_on() is not None:
        raise TypeError("search_box: given an arm that asks a model; expected one that proposes by itself")
    return walk.trajectory
