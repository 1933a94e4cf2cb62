"""The sampler behind the `Sampler` protocol: fit a policy on given programs, then draw programs from it.

A policy is a conditional logit over typed moves, `score = weights . features - cost`, divided by the temperature. A share
of the draws comes from the policy before learning, so that what was learned cannot rule anything out. Nothing is kept
between draws but what is a pure function of the texts, so a program depends on (examples, task, temperature, rng) only.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, count

import numpy as np

from opsmith.records import Task
from opsmith.targets.step.check import check_program
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.sampler.emit import program_text
from opsmith.targets.step.sampler.features import Group, dynamic_groups, prior_cost, static_groups, texts
from opsmith.targets.step.sampler.logit import Decision, fit
from opsmith.targets.step.sampler.moves import Enumerator
from opsmith.targets.step.sampler.problem import Problem
from opsmith.targets.step.sampler.records import Move, State
from opsmith.targets.step.sampler.replay import replay

COST_RATE = 1.0  # lambda: what one unit of cost takes from a score
PRECISION = 0.5  # of the normal prior on every weight
INSURANCE = 0.3  # share of draws from the policy before learning
ROOM = 2  # moves beyond two per fn
MIN_TEMPERATURE = 0.02

_numbers = count()

Feature = str
Record = tuple[tuple[tuple[str, ...], ...], tuple[float, ...], int]  # features and costs per candidate, chosen


@lru_cache(maxsize=256)
def enumerator_of(text: str) -> Enumerator:
    """The moves of a task text; tables fill as they are asked."""
    return Enumerator(Problem(read_spec(text)))


@lru_cache(maxsize=1024)
def lessons(text: str, source: str) -> tuple[Record, ...]:
    """The decisions of a program as features; empty when it is no program of the task."""
    enumerator = enumerator_of(text)
    graph = check_program(enumerator.problem.spec, source).graph
    if graph is None:
        return ()
    return tuple(_record(choice.state, choice.candidates, choice.chosen) for choice in replay(enumerator, graph))


def _record(state: State, candidates: Sequence[Move], chosen: int) -> Record:
    features, costs = [], []
    for move in candidates:
        groups = (*static_groups(state, move), *dynamic_groups(state, move))
        features.append(tuple(text for group in groups for text in texts(group)))
        costs.append(prior_cost(state, move))
    return tuple(features), tuple(costs), chosen


class StepSampler:
    """STeP's program sampler."""

    def fit(self, examples: Sequence[tuple[Task, str]]) -> StepPolicy:
        """A policy fitted on (task, program) pairs; deterministic. Programs that do not check are ignored."""
        return _fitted(tuple((task.text, source) for task, source in examples))


@lru_cache(maxsize=32)
def _fitted(examples: tuple[tuple[str, str], ...]) -> StepPolicy:
    records = [record for text, source in examples for record in lessons(text, source)]
    numbers: dict[Feature, int] = {}
    decisions = [_decision(record, numbers) for record in records]
    weights = fit(decisions, len(numbers), PRECISION)
    return StepPolicy({feature: float(weights[number]) for feature, number in numbers.items()})


def _decision(record: Record, numbers: dict[Feature, int]) -> Decision:
    features, costs, chosen = record
    flat = [numbers.setdefault(feature, len(numbers)) for bag in features for feature in bag]
    starts = list(accumulate((len(bag) for bag in features[:-1]), initial=0))
    offsets = -COST_RATE * np.array(costs)
    return Decision(np.array(flat, dtype=np.int64), np.array(starts, dtype=np.int64), offsets, chosen)


class StepPolicy:
    """A fitted policy; `weights` by feature."""

    def __init__(self, weights: dict[Feature, float]) -> None:
        self.weights = weights
        self._learned = _Scorer(weights)
        self._prior = _Scorer({})

    def sample(self, task: Task, temperature: float, rng: random.Random) -> str:
        """The text of one program for `task`; every stream is consumed at most once."""
        scorer = self._prior if rng.random() < INSURANCE else self._learned
        enumerator = enumerator_of(task.text)
        tree = scorer.tree(task.text, enumerator)
        limit = 2 * len(enumerator.problem.fns) + ROOM
        return program_text(enumerator.problem, tree.draw(max(temperature, MIN_TEMPERATURE), rng, limit))


class _Scorer:
    """Scores of moves under fixed weights, and the tree of what was drawn so far per task."""

    def __init__(self, weights: dict[Feature, float]) -> None:
        self.weights, self.number = weights, next(_numbers)
        self._trees: dict[str, _Tree] = {}

    def tree(self, text: str, enumerator: Enumerator) -> _Tree:
        if text not in self._trees:
            self._trees[text] = _Tree(self, enumerator)
        return self._trees[text]


class _Tree:
    """The states that draws went through, so that common beginnings are scored once."""

    def __init__(self, scorer: _Scorer, enumerator: Enumerator) -> None:
        self.scorer, self.enumerator = scorer, enumerator
        self.root = _Node(enumerator.start())
        self._known: dict[Group, float] = {}

    def draw(self, temperature: float, rng: random.Random, limit: int) -> list[Move]:
        """One sequence of moves, a Return last."""
        node, moves = self.root, list[Move]()
        while True:
            self._open(node)
            ending = len(moves) >= limit
            place = node.pick(temperature, rng, ending)
            if place is None or (ending and not node.returns):
                return moves
            move = node.candidates[place]
            moves.append(move)
            if move.fn is None:
                return moves
            if place not in node.children:
                node.children[place] = _Node(self.enumerator.after(node.state, move))
            node = node.children[place]

    def _open(self, node: _Node) -> None:
        if node.scores is None:
            node.returns = self.enumerator.returns(node.state)
            node.candidates = (*node.state.moves, *node.returns)
            node.scores = [self._score(node.state, move) for move in node.candidates]

    def _score(self, state: State, move: Move) -> float:
        number = self.scorer.number
        score = move.scores.get(number)
        if score is None:
            score = move.scores[number] = sum(map(self._weight, static_groups(state, move)))
        for group in dynamic_groups(state, move):
            score += self._weight(group)
        return score - COST_RATE * prior_cost(state, move)

    def _weight(self, group: Group) -> float:
        found = self._known.get(group)
        if found is None:
            weights = self.scorer.weights
            found = self._known[group] = sum(weights.get(text, 0.0) for text in texts(group))
        return found


class _Node:
    """One state with its scored candidates."""

    __slots__ = ("candidates", "children", "returns", "scores", "state", "sums")

    def __init__(self, state: State) -> None:
        self.state = state
        self.candidates: tuple[Move, ...] = ()
        self.returns: list[Move] = []
        self.scores: list[float] | None = None
        self.children: dict[int, _Node] = {}
        self.sums: dict[tuple[float, bool], list[float]] = {}

    def pick(self, temperature: float, rng: random.Random, ending: bool) -> int | None:
        """The place of one candidate, drawn by its score; with `ending` a Return where there is one."""
        key = (temperature, ending and bool(self.returns))
        if key not in self.sums:
            self.sums[key] = self._cumulated(*key)
        sums = self.sums[key]
        if not sums:
            return None
        first = len(self.candidates) - len(sums)
        return min(first + bisect(sums, rng.random() * sums[-1]), len(self.candidates) - 1)

    def _cumulated(self, temperature: float, ending: bool) -> list[float]:
        scores = self.scores or []
        if ending:
            scores = scores[len(self.candidates) - len(self.returns) :]
        if not scores:
            return []
        top = max(scores)
        return list(accumulate(math.exp((score - top) / temperature) for score in scores))
