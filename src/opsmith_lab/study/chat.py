"""Searches in which a chat model proposes: alone, told to act as Bayesian optimisation, in a tree search, with CMA-ES.

A reply is one JSON array within the bounds. What is none is a `Fault`; the model is told and asked once more, and then
the evaluation is lost. Nothing is clipped, rounded or put in its place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from opsmith.models.answers import strip_thoughts
from opsmith_lab.study.arms import BUDGET, Enquiry, Fault, Script
from opsmith_lab.study.minds import MINDS
from opsmith_lab.study.optimisers import make_cma
from opsmith_lab.study.trajectory import Array, Domain, Point

EMPTY, NO_POINT, OUT_OF_BOUNDS = "empty", "no point", "out of bounds"
TOP, LAST = 5, 20  # points that a model in a centaur sees
FIRST, EVERY = 10, 3  # its proposals: the tenth, and every third from there on
DEPTH, EXPLORATION, WIDENING = (
    5,
    0.5,
    0.5,
)  # of the tree: halvings of the box, weight of the bonus, visits^WIDENING children
_TASK = (
    "You look for the minimum of a function of {d} variables. Nothing else is known of it. You propose one point after "
    "another and are told the value of each; smaller is better. There are {budget} evaluations in all.{role}\n"
    "Reply with your next point and nothing else: one JSON array of {d} numbers within the bounds."
)
_BAYES = (
    "\nAct as Bayesian optimisation: keep a Gaussian process that is fitted to all points and values, weigh its mean "
    "against its uncertainty everywhere within the bounds, and propose the point of the largest expected improvement."
)
_CELL = "\nA tree search chose the cell that the bounds describe; your point must lie in it."
_CENTAUR = (
    "\nCMA-ES makes most proposals; this one is yours and takes the place of one of its own. You see its state, the "
    "best points and the last ones."
)
_NUMBER = re.compile(r"\[[^\[\]]*\]")
_LINE = re.compile(r"^- (\[.*\]) -> (\S+)$", re.MULTILINE)

History = list[tuple[Point | None, float]]
Enquiring = Generator[Enquiry | Fault, Any, Point | None]


def read_point(text: str, domain: Domain) -> Point | Fault:
    """The last JSON array of a reply, if it is a point of the domain."""
    answer = strip_thoughts(text).strip()
    arrays = _NUMBER.findall(answer)
    try:
        point = tuple(float(number) for number in json.loads(arrays[-1]) if not isinstance(number, bool))
    except (IndexError, ValueError, TypeError):
        point = ()
    if len(point) != domain.dimension or not all(map(math.isfinite, point)):
        return Fault(NO_POINT if answer else EMPTY, text)
    return point if domain.contains(point) else Fault(OUT_OF_BOUNDS, text)


def write_prompt(bounds: Domain, history: Sequence[tuple[Point | None, float]], done: int, state: str = "") -> str:
    """What a model sees; `read_prompt` reads it."""
    axes = "".join(f"- {[low, high]}\n" for low, high in zip(bounds.lower, bounds.upper, strict=True))
    lines = "".join(f"- {list(point)} -> {value:.6g}\n" for point, value in history if point is not None)
    return f"bounds:\n{axes}{state}evaluations done: {done} of {BUDGET}\npoints and their values:\n{lines or '- none'}"


def read_prompt(text: str) -> tuple[Domain, Array, Array]:
    """Bounds, points [n, d] and values of a prompt: what known minds that are asked like a model know."""
    head, _, tail = text.partition("evaluations done")
    axes = [json.loads(array) for array in _NUMBER.findall(head.partition("state")[0])]
    domain = Domain(*zip(*axes, strict=True))
    pairs = _LINE.findall(tail)
    points = np.array([json.loads(point) for point, _ in pairs], float).reshape(len(pairs), domain.dimension)
    return domain, points, np.array([float(value) for _, value in pairs])


def answer_as_mind(mind: str, prompt: str, seed: int) -> str:
    """The reply of a known mind to a prompt."""
    domain, points, values = read_prompt(prompt)
    shares = MINDS[mind](domain.to_unit(points), values, np.random.default_rng(seed))
    return json.dumps(_name_earlier(domain.from_unit(np.clip(shares, 0, 1)), points))


def _name_earlier(point: Point, points: Array) -> list[float]:
    """An earlier point's own numbers where this one is that but for rounding: copies are exact."""
    near = np.flatnonzero(np.isclose(points, point, rtol=1e-12, atol=1e-12).all(axis=1))
    return points[near[0]].tolist() if len(near) else list(point)


def _enquire(role: str, bounds: Domain, prompt: str) -> Enquiring:
    system = _TASK.format(d=bounds.dimension, budget=BUDGET, role=role)
    complaint = ""
    for _ in range(2):
        outcome = read_point((yield Enquiry(system, prompt + complaint)), bounds)
        if not isinstance(outcome, Fault):
            return outcome
        yield outcome
        complaint = f"\nYour reply to this was refused ({outcome.kind}): one JSON array within the bounds is expected."
    return None


def converse(role: str, domain: Domain, seed: int) -> Script:
    """The model sees all points in their order."""
    history: History = []
    while True:
        point = yield from _enquire(role, domain, write_prompt(domain, history, len(history)))
        value = yield point
        history.append((point, value))


@dataclass
class TreeCell:
    """A node of the tree: a box, the values that were found in it, and the cells in it that were opened."""

    box: Domain
    values: list[float] = field(default_factory=list)
    children: dict[tuple[bool, ...], TreeCell] = field(default_factory=dict)

    def open_child(self, point: Point) -> TreeCell:
        """The part of the box, halved along each axis, that holds the point."""
        middle = self.box.from_unit(np.full(self.box.dimension, 0.5))
        sides = tuple(x > half for x, half in zip(point, middle, strict=True))
        lower, upper = (
            tuple(b if side == is_upper else a for side, a, b in zip(sides, ends, middle, strict=True))
            for ends, is_upper in ((self.box.lower, True), (self.box.upper, False))
        )
        return self.children.setdefault(sides, TreeCell(Domain(lower, upper)))

    def choose_child(self, everything: Sequence[float]) -> TreeCell:
        """The child of the largest upper bound; a value is worth the share of all values that it is below."""

        def bound(child: TreeCell) -> float:
            worth = np.mean([np.mean(np.array(everything) >= value) for value in child.values])
            return float(worth) + EXPLORATION * math.sqrt(2 * math.log(len(self.values)) / len(child.values))

        return max(self.children.values(), key=bound)


def search_tree(domain: Domain, seed: int) -> Script:
    """Monte Carlo tree search over a grid that is halved from level to level; the model proposes in the chosen cell."""
    history: History = []
    root = TreeCell(domain)
    while True:
        cell, path = root, [root]
        while len(path) <= DEPTH and len(cell.children) >= max(1, math.ceil(len(cell.values) ** WIDENING)):
            cell = cell.choose_child(root.values)
            path.append(cell)
        point = yield from _enquire(_CELL, cell.box, write_prompt(cell.box, history, len(history)))
        value = yield point
        history.append((point, value))
        if point is not None:
            for each in [*path, *([cell.open_child(point)] if len(path) <= DEPTH else [])]:
                each.values.append(value)


def join_cma(domain: Domain, seed: int) -> Script:
    """CMA-ES whose every third proposal from the tenth on is the model's; one that is lost leaves CMA-ES's own for the
    next evaluation."""
    strategy = make_cma(domain, seed)
    history: History = []
    told: list[tuple[Array, float]] = []
    for number in count(1):
        if not told:
            generation = strategy.ask()
        shares = generation[len(told)]
        point: Point | None = domain.from_unit(shares)
        if number >= FIRST and (number - FIRST) % EVERY == 0:
            ranked = sorted((each for each in history if each[0] is not None), key=lambda pair: pair[1])
            prompt = write_prompt(
                domain, [*ranked[:TOP], *history[-LAST:]], len(history), _describe_cma(domain, strategy)
            )
            point = yield from _enquire(_CENTAUR, domain, prompt)
            shares = shares if point is None else domain.to_unit(np.array(point))
        value = yield point
        history.append((point, value))
        if point is not None:
            told.append((shares, value))
        if len(told) == len(generation):
            strategy.tell([each for each, _ in told], [value for _, value in told])
            told = []


def _describe_cma(domain: Domain, strategy: Any) -> str:
    ranges = np.array(domain.upper) - np.array(domain.lower)
    mean = domain.from_unit(np.clip(strategy.result.xfavorite, 0, 1))
    covariance = strategy.sigma**2 * strategy.C * np.outer(ranges, ranges)
    rows = "".join(f"  - {[float(f'{number:.4g}') for number in row]}\n" for row in covariance)
    return (
        f"state of CMA-ES:\n  mean: {[float(f'{number:.4g}') for number in mean]}\n"
        f"  sigma, in shares of the ranges: {strategy.sigma:.4g}\n  covariance:\n{rows}"
    )


SCRIPTS: Mapping[str, Callable[[Domain, int], Script]] = {
    "chat": partial(converse, ""),
    "chat-bo": partial(converse, _BAYES),
    "mcts": search_tree,
    "centaur": join_cma,
}
