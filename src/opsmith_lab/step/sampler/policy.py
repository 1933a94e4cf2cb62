"""The sampler behind the `Sampler` protocol: fit a policy on given programs, then draw programs from it.

A policy is a conditional logit over typed moves, `score = weights . features - cost`, divided by the temperature. A
share of the draws comes from the policy half learned, so that what was learned rules nothing out. Nothing is kept
between draws but what is a pure function of the texts, so a program depends on (examples, task, temperature, rng) only;
what is kept is bounded in size.
"""

from __future__ import annotations

import math
import random
from array import array
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain, count
from sys import intern

import numpy as np

from opsmith.records import Task
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.check import check_program
from opsmith_lab.step.sampler.emit import program_text
from opsmith_lab.step.sampler.features import Group, dynamic_groups, feature_texts, prior_cost, static_groups
from opsmith_lab.step.sampler.logit import Decision, Logit
from opsmith_lab.step.sampler.moves import Enumerator
from opsmith_lab.step.sampler.records import Move, PartialProgram
from opsmith_lab.step.sampler.replay import Choice, replay_program
from opsmith_lab.step.sampler.shelf import Shelf
from opsmith_lab.step.sampler.task import SamplerTask

COST_RATE = 1.0  # lambda: what one unit of cost takes from a score
PRECISION = 3.0  # of the normal prior on every weight
NEARNESS = 6.0  # how many times more an example counts whose vocabulary is the task's
INSURANCE = 0.5  # share of draws from a policy half learned
HALF = 0.6  # what it keeps of every weight
MIN_TEMPERATURE = 0.02
MAX_RIVALS = 10_000  # moves that the decisions of one program are learned from, those that were made among them
MAX_LEARNED = 20_000  # such moves of all programs of a prompt together
MOVE_BYTES, PLACE_BYTES = 300, 40  # of a move, and of its place among the scored ones of one state
TASKS_ROOM = 200 << 20  # bytes: what is known of tasks and the states that draws went through
LESSONS_ROOM = 50 << 20

_numbers = count()

Feature = str
Record = tuple[tuple[tuple[str, ...], ...], tuple[float, ...], int]  # features and costs per candidate, chosen


@lru_cache(maxsize=256)
def vocabulary_of(text: str) -> frozenset[str]:
    """The words that a task text's functions use."""
    return frozenset(SamplerTask(read_spec(text)).vocabulary)


@dataclass
class _Explored:
    """The moves of a task, and per policy (by number) the states that its draws went through."""

    enumerator: Enumerator
    trees: dict[int, tuple[_Tree, _Tree]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.enumerator.size + sum(tree.size for pair in self.trees.values() for tree in pair)


@dataclass(frozen=True)
class _Lessons:
    """The decisions of a program."""

    records: tuple[Record, ...]

    @property
    def size(self) -> int:
        return sum(80 + 8 * len(bag) for features, _, _ in self.records for bag in features)


_explored: Shelf[str, _Explored] = Shelf(TASKS_ROOM)
_lessons: Shelf[tuple[str, str], _Lessons] = Shelf(LESSONS_ROOM)


def explore_task(text: str) -> _Explored:
    """What is known of a task text."""
    return _explored.get(text, lambda: _Explored(Enumerator(SamplerTask(read_spec(text)))))


def read_lessons(text: str, source: str) -> tuple[Record, ...]:
    """The decisions of a program as features; empty when it is no program of the task."""
    records = _lessons.get((text, source), lambda: _Lessons(tuple(_derive_lessons(text, source)))).records
    _lessons.drop_oldest()
    _explored.drop_oldest()
    return records


def _derive_lessons(text: str, source: str) -> list[Record]:
    enumerator = explore_task(text).enumerator
    graph = check_program(enumerator.task.spec, source).graph
    choices = [] if graph is None else replay_program(enumerator, graph)
    limit = _share_evenly(MAX_RIVALS, [len(choice.candidates) for choice in choices])
    features_by_group: dict[Group, tuple[Feature, ...]] = {}
    return [_record_choice(choice, limit, features_by_group) for choice in choices]


def _share_evenly(total: int, counts: Sequence[int]) -> int:
    """How much each may have of a total: all that it wants where there is enough, else the same for all."""
    return max(counts, default=0) if sum(counts) <= total else max(2, total // len(counts))


def _record_choice(choice: Choice, limit: int, features_by_group: dict[Group, tuple[Feature, ...]]) -> Record:
    """One decision as features of at most so many moves; `features_by_group` gathers those of every group met."""
    features, costs = [], []
    places = _spread_places(len(choice.candidates), choice.chosen, limit)
    for place in places:
        move = choice.candidates[place]
        groups = (*static_groups(choice.state, move), *dynamic_groups(choice.state, move))
        for group in groups:
            if group not in features_by_group:
                features_by_group[group] = tuple(map(intern, feature_texts(group)))
        features.append(tuple(chain.from_iterable([features_by_group[group] for group in groups])))
        costs.append(prior_cost(choice.state, move))
    return tuple(features), tuple(costs), places.index(choice.chosen)


def _spread_places(total: int, chosen: int, limit: int) -> list[int]:
    """At most so many of `total` places, evenly spread, `chosen` among them."""
    if total <= limit:
        return list(range(total))
    spread = {place * total // (limit - 1) for place in range(limit - 1)}
    return sorted(spread | {chosen})


class StepSampler:
    """STeP's program sampler."""

    def fit_policy(self, examples: Sequence[tuple[Task, str]]) -> StepPolicy:
        """A policy fitted on (task, program) pairs; deterministic. Programs that do not check are ignored."""
        return _fit_policy(tuple((task.text, source) for task, source in examples))


@lru_cache(maxsize=2)
def _fit_policy(examples: tuple[tuple[str, str], ...]) -> StepPolicy:
    return StepPolicy(examples)


class StepPolicy:
    """Examples and what was fitted on them, per task: the examples that are like the task count more."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        records = [(text, record) for text, source in examples for record in read_lessons(text, source)]
        limit = _share_evenly(MAX_LEARNED, [len(record[1]) for _, record in records])
        numbers: dict[Feature, int] = {}
        decisions = [_make_decision(_thin_record(record, limit), numbers) for _, record in records]
        self._owners = [text for text, _ in records]  # per decision the text of its example's task
        self._numbers = numbers
        self._logit = Logit(decisions, len(numbers))
        self._number = next(_numbers)
        self._fitted = lru_cache(maxsize=8)(self.weigh_features)

    def sample_program(self, task: Task, temperature: float, rng: random.Random) -> str:
        """The text of one program for `task`; every stream is consumed at most once."""
        explored = explore_task(task.text)
        learned, careful = self._find_trees(task.text, explored)
        tree = careful if rng.random() < INSURANCE else learned
        program = program_text(explored.enumerator.task, tree.draw_moves(max(temperature, MIN_TEMPERATURE), rng))
        _explored.drop_oldest()
        return program

    def weigh_features(self, text: str) -> dict[Feature, float]:
        """What was learned for a task text."""
        nearness = {owner: _measure_nearness(text, owner) for owner in set(self._owners)}
        importance = np.array([1.0 + NEARNESS * nearness[owner] for owner in self._owners])
        fitted = self._logit.fit_weights(importance, PRECISION)
        return {feature: float(fitted[number]) for feature, number in self._numbers.items()}

    def _find_trees(self, text: str, explored: _Explored) -> tuple[_Tree, _Tree]:
        if self._number not in explored.trees:
            weights = self._fitted(text)
            careful = {feature: HALF * weight for feature, weight in weights.items()}
            explored.trees[self._number] = _Tree(weights, explored.enumerator), _Tree(careful, explored.enumerator)
        return explored.trees[self._number]


def _measure_nearness(text: str, other_text: str) -> float:
    """The share of vocabulary that two tasks have in common, from 0 to 1."""
    words, other_words = vocabulary_of(text), vocabulary_of(other_text)
    return len(words & other_words) / max(1, len(words | other_words))


def _thin_record(record: Record, limit: int) -> Record:
    features, costs, chosen = record
    places = _spread_places(len(costs), chosen, limit)
    return tuple(features[i] for i in places), tuple(costs[i] for i in places), places.index(chosen)


def _make_decision(record: Record, numbers: dict[Feature, int]) -> Decision:
    features, costs, chosen = record
    flat = [numbers.setdefault(feature, len(numbers)) for bag in features for feature in bag]
    starts = list(accumulate((len(bag) for bag in features[:-1]), initial=0))
    offsets = -COST_RATE * np.array(costs)
    return Decision(np.array(flat, dtype=np.int64), np.array(starts, dtype=np.int64), offsets, chosen)


class _Tree:
    """One task under fixed weights, and the states that draws went through: common beginnings are scored once."""

    def __init__(self, weights: dict[Feature, float], enumerator: Enumerator) -> None:
        self.weights, self.enumerator = weights, enumerator
        self.root = _Node(enumerator.start_program())
        self._known: dict[Group, float] = {}
        self._nodes_size = 0

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return self._nodes_size + 200 * len(self._known)

    def draw_moves(self, temperature: float, rng: random.Random) -> list[Move]:
        """One sequence of moves, a Return last."""
        node, moves = self.root, list[Move]()
        while True:
            self._open_node(node)
            ending = len(moves) >= self.enumerator.task.limit
            place = node.pick_candidate(temperature, rng, ending)
            if place is None or (ending and not node.returns):
                return moves
            move = node.candidate_at(place)
            moves.append(move)
            if move.fn is None:
                return moves
            if place not in node.children:
                node.children[place] = _Node(self.enumerator.apply_move(node.state, move))
            node = node.children[place]

    def _open_node(self, node: _Node) -> None:
        if not node.is_open:
            node.returns = self.enumerator.list_returns(node.state)
            node.scores = array(
                "d", [self._score_move(node.state, move) for move in (*node.state.moves, *node.returns)]
            )
            node.is_open = True
            self._nodes_size += PLACE_BYTES * len(node.scores) + MOVE_BYTES * (node.state.fresh + len(node.returns))

    def _score_move(self, state: PartialProgram, move: Move) -> float:
        score = move.score
        if score is None:
            score = move.score = self._sum_weights(0.0, static_groups(state, move))
        return self._sum_weights(score, dynamic_groups(state, move)) - COST_RATE * prior_cost(state, move)

    def _sum_weights(self, start: float, groups: Iterable[Group]) -> float:
        weight_by_group = self._known
        for group in groups:
            weight = weight_by_group.get(group)
            if weight is None:
                weight = weight_by_group[group] = sum(self.weights.get(text, 0.0) for text in feature_texts(group))
            start += weight
        return start


class _Node:
    """One state with its scored candidates: its moves, then the ways to end here."""

    __slots__ = ("children", "is_open", "returns", "scores", "state", "sums")

    def __init__(self, state: PartialProgram) -> None:
        self.state = state
        self.is_open = False  # once its candidates are scored
        self.returns: list[Move] = []
        self.scores = array("d")
        self.children: dict[int, _Node] = {}
        self.sums: dict[tuple[float, bool], array[float]] = {}

    def candidate_at(self, place: int) -> Move:
        moves = self.state.moves
        return moves[place] if place < len(moves) else self.returns[place - len(moves)]

    def pick_candidate(self, temperature: float, rng: random.Random, ending: bool) -> int | None:
        """The place of one candidate, drawn by its score; with `ending` a Return where there is one."""
        key = (temperature, ending and bool(self.returns))
        if key not in self.sums:
            self.sums[key] = self._cumulate_scores(*key)
        sums = self.sums[key]
        if not sums:
            return None
        first = len(self.scores) - len(sums)
        return min(first + bisect(sums, rng.random() * sums[-1]), len(self.scores) - 1)

    def _cumulate_scores(self, temperature: float, ending: bool) -> array[float]:
        scores = self.scores[len(self.state.moves) :] if ending else self.scores
        if not scores:
            return array("d")
        top = max(scores)
        return array("d", accumulate(math.exp((score - top) / temperature) for score in scores))
