"""The sampler behind the `Sampler` protocol: fit a policy on given programs, then draw programs from it.

A policy is a conditional logit over typed moves, `score = weights . features - cost`, divided by the temperature. A
share of the draws comes from the policy half learned, so that what was learned rules nothing out. Nothing is kept
between draws but what is a pure function of the texts, so a program depends on (examples, task, temperature, rng) only.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, count
from sys import intern

import numpy as np

from opsmith.records import Task
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.sampler.emit import program_text
from opsmith.targets.step.sampler.features import Group, dynamic_groups, prior_cost, static_groups, texts
from opsmith.targets.step.sampler.logit import Decision, Logit
from opsmith.targets.step.sampler.moves import Enumerator
from opsmith.targets.step.sampler.problem import Problem
from opsmith.targets.step.sampler.records import Move, State
from opsmith.targets.step.sampler.replay import replay

COST_RATE = 1.0  # lambda: what one unit of cost takes from a score
PRECISION = 3.0  # of the normal prior on every weight
NEARNESS = 6.0  # how many times more an example counts whose vocabulary is the task's
INSURANCE = 0.5  # share of draws from a policy half learned
HALF = 0.6  # what it keeps of every weight
ROOM = 6  # moves beyond one per fn
MIN_TEMPERATURE = 0.02
TREES_KEPT = 3  # tasks whose explored states stay in memory; a run asks task by task

_numbers = count()

Feature = str
Record = tuple[tuple[tuple[str, ...], ...], tuple[float, ...], int]  # features and costs per candidate, chosen


@lru_cache(maxsize=256)
def vocabulary_of(text: str) -> frozenset[str]:
    """The words that a task text's functions use."""
    return frozenset(Problem(read_spec(text)).vocabulary)


@lru_cache(maxsize=TREES_KEPT)
def enumerator_of(text: str) -> Enumerator:
    """The moves of a task text; tables fill as they are asked, to hundreds of megabytes for some, so few are kept."""
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
        features.append(tuple(intern(text) for group in groups for text in texts(group)))
        costs.append(prior_cost(state, move))
    return tuple(features), tuple(costs), chosen


class StepSampler:
    """STeP's program sampler."""

    def fit(self, examples: Sequence[tuple[Task, str]]) -> StepPolicy:
        """A policy fitted on (task, program) pairs; deterministic. Programs that do not check are ignored."""
        return _policy(tuple((task.text, source) for task, source in examples))


@lru_cache(maxsize=2)
def _policy(examples: tuple[tuple[str, str], ...]) -> StepPolicy:
    return StepPolicy(examples)


class StepPolicy:
    """Examples and what was fitted on them, per task: the examples that are like the task count more."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        numbers: dict[Feature, int] = {}
        decisions: list[Decision] = []
        self._owners: list[str] = []  # per decision the text of its example's task
        for text, source in examples:
            found = [_decision(record, numbers) for record in lessons(text, source)]
            decisions += found
            self._owners += [text] * len(found)
        self._numbers = numbers
        self._logit = Logit(decisions, len(numbers))
        self._trees: OrderedDict[str, tuple[_Tree, _Tree]] = OrderedDict()

    def sample(self, task: Task, temperature: float, rng: random.Random) -> str:
        """The text of one program for `task`; every stream is consumed at most once."""
        learned, careful = self._fitted(task.text)
        tree = careful if rng.random() < INSURANCE else learned
        problem = tree.enumerator.problem
        limit = len(problem.fns) + ROOM
        return program_text(problem, tree.draw(max(temperature, MIN_TEMPERATURE), rng, limit))

    def weights(self, text: str) -> dict[Feature, float]:
        """What was learned for a task text."""
        nearness = {owner: _nearness(text, owner) for owner in set(self._owners)}
        importance = np.array([1.0 + NEARNESS * nearness[owner] for owner in self._owners])
        fitted = self._logit.fit(importance, PRECISION)
        return {feature: float(fitted[number]) for feature, number in self._numbers.items()}

    def _fitted(self, text: str) -> tuple[_Tree, _Tree]:
        if text not in self._trees:
            weights = self.weights(text)
            careful = {feature: HALF * weight for feature, weight in weights.items()}
            enumerator = enumerator_of(text)
            self._trees[text] = _Tree(weights, enumerator), _Tree(careful, enumerator)
            if len(self._trees) > TREES_KEPT:
                self._trees.popitem(last=False)
        self._trees.move_to_end(text)
        return self._trees[text]


def _nearness(one: str, other: str) -> float:
    """The share of vocabulary that two tasks have in common, from 0 to 1."""
    left, right = vocabulary_of(one), vocabulary_of(other)
    return len(left & right) / max(1, len(left | right))


def _decision(record: Record, numbers: dict[Feature, int]) -> Decision:
    features, costs, chosen = record
    flat = [numbers.setdefault(feature, len(numbers)) for bag in features for feature in bag]
    starts = list(accumulate((len(bag) for bag in features[:-1]), initial=0))
    offsets = -COST_RATE * np.array(costs)
    return Decision(np.array(flat, dtype=np.int64), np.array(starts, dtype=np.int64), offsets, chosen)


class _Tree:
    """One task under fixed weights, and the states that draws went through: common beginnings are scored once."""

    def __init__(self, weights: dict[Feature, float], enumerator: Enumerator) -> None:
        self.weights, self.enumerator, self.number = weights, enumerator, next(_numbers)
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
        known, number = self._known, self.number
        score = move.scores.get(number)
        if score is None:
            score = 0.0
            for group in static_groups(state, move):
                score += known[group] if group in known else self._weight(group)
            move.scores[number] = score
        for group in dynamic_groups(state, move):
            score += known[group] if group in known else self._weight(group)
        return score - COST_RATE * prior_cost(state, move)

    def _weight(self, group: Group) -> float:
        weights = self.weights
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
