"""The plan book: what the stored rows of a run say of its plans, and what comes next. A pure function of them.

A task that stays unsolved is split, and its children are sampled beside it, which has half of its samples from then
on: what sampling would find is not lost to a split that does not help. Of a child that stays unsolved two things may be
wrong. Its contract is renegotiated, once, if none of its programs came as far as being compared: nothing that was tried
meets it. Otherwise it is too much at once, and is split itself. Then it is the other thing's turn. Where neither helps
it is sampled on, until the demonstrations are used up or its patience is: then it is lost, and its task is split
otherwise. When all children of a task are solved, their programs are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from opsmith.records import Task
from opsmith.settings import Planning
from opsmith.store.plans import CONTRACT, StoredPlan

PATIENCE = 4  # times `contract_rounds`: as long is a child tried that nothing else is left for
STATIC = "static"  # the planner that lists its splits: when it has no more, it will have none later


class PlanState(StrEnum):
    """How a task, or a child of one, stands."""

    UNSPLIT = "unsplit"  # a task of the run that is sampled itself, and was never split
    OPEN = "open"  # a child that is sampled, or a task whose children are
    SOLVED = "solved"
    JOINING = "joining"  # all children are solved; the next round joins their programs
    JOINED = "joined"  # solved so
    JOIN_FAILED = "join failed"
    RENEGOTIATED = "renegotiated"  # a child that is sampled under another contract
    GIVEN_UP = "given up"  # no split helped


@dataclass(frozen=True)
class PlanFacts:
    """What of a run's stored rows decides on its plans."""

    plans: tuple[StoredPlan, ...] = ()
    rounds: tuple[tuple[int, frozenset[str]], ...] = ()  # that have ended: number, ids of the tasks that were tried
    solved: frozenset[str] = frozenset()  # digests
    joined: frozenset[str] = frozenset()  # of them, those of tasks that a joined program solved
    exhausted: frozenset[str] = frozenset()  # ids of tasks for which the model has nothing more
    faulty: frozenset[str] = frozenset()  # ids of tasks whose authors are at fault
    compared: frozenset[str] = frozenset()  # ids of tasks of which a program came as far as being compared
    tried_joins: frozenset[tuple[str, int]] = frozenset()  # ids of tasks with the numbers of plans that were joined

    def count_tries(self, task: str, since: int) -> int:
        """The ended rounds from `since` on in which a task was tried."""
        return sum(number >= since and task in attempted for number, attempted in self.rounds)

    @property
    def untried(self) -> frozenset[str]:
        """Tasks that are not asked for any more."""
        return self.exhausted | self.faulty


@dataclass(frozen=True)
class PlanStep:
    """A plan that is to be made before the next round."""

    task: Task  # that is split
    number: int  # of the plan, among the task's
    reason: str
    depth: int  # of the task; 0: one of the run's own
    before: tuple[StoredPlan, ...] = ()  # the task's plans so far
    changed: str = ""  # the node whose contract is renegotiated; "": the task is split anew


@dataclass(frozen=True)
class PlannedTask:
    """A task of the run, or a child of one, with what came of it."""

    task: Task
    depth: int  # 0: one of the run's own
    state: PlanState
    name: str = ""  # of a child: its node's
    plans: tuple[StoredPlan, ...] = ()  # all attempts at splitting it
    children: tuple[PlannedTask, ...] = ()  # those of the plan that holds
    step: PlanStep | None = None  # what is to be planned for it
    is_lost: bool = False  # a child that is not tried any more

    @property
    def active(self) -> StoredPlan | None:
        """The plan that holds; None: there is none."""
        return find_active(self.plans)

    @property
    def is_sampled(self) -> bool:
        """Whether programs for it are asked for, not for its children."""
        if self.state is PlanState.GIVEN_UP:
            return not self.is_lost
        if not self.depth and self.state is PlanState.OPEN:
            return True
        return not self.children and self.state in (PlanState.UNSPLIT, PlanState.OPEN, PlanState.RENEGOTIATED)

    def list_open(self) -> Iterator[PlannedTask]:
        """Itself and all below it that have a say in the next round, children first."""
        if self.state is PlanState.OPEN and self.step is None:
            for child in self.children:
                yield from child.list_open()
        yield self

    def list_all(self) -> Iterator[PlannedTask]:
        """Itself, and then all below it."""
        yield self
        for child in self.children:
            yield from child.list_all()


@dataclass(frozen=True)
class PlanForest:
    """A tree for each task of the run."""

    trees: tuple[PlannedTask, ...]
    untried: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether there is anything to try."""
        return bool(self.frontier or self.joins or self.steps)

    @property
    def steps(self) -> list[PlanStep]:
        """What is to be planned before the next round. Each changes the forest: only the first one is sure."""
        return [node.step for node in self._list_open() if node.step is not None]

    @property
    def frontier(self) -> tuple[Task, ...]:
        """What the next round samples; a child that two plans share once."""
        sampled = [node for node in self._list_open() if node.is_sampled and node.task.id not in self.untried]
        first = {node.task.digest if node.depth else node.task.id: node.task for node in reversed(sampled)}
        return tuple(first.values())[::-1]

    @property
    def joins(self) -> tuple[PlannedTask, ...]:
        """Whose parts are joined in the next round."""
        return tuple(node for node in self._list_open() if node.state is PlanState.JOINING)

    @property
    def coming_joins(self) -> int:
        """Tasks, and children, whose programs are joined later if all goes well: a budget has a sample for each."""
        return sum(node.state is PlanState.OPEN and bool(node.children) for node in self._list_open())

    def share_samples(self, samples: int) -> dict[str, int]:
        """By task of the frontier that does not have all samples, how many it has: half, where it has children."""
        return {tree.task.id: -(-samples // 2) for tree in self.trees if tree.children and tree.is_sampled}

    def _list_open(self) -> Iterator[PlannedTask]:
        for tree in self.trees:
            yield from tree.list_open()


def find_active(plans: Sequence[StoredPlan]) -> StoredPlan | None:
    """Of a task's plans the one that holds: the last split, with the contract that was last changed."""
    active: StoredPlan | None = None
    for plan in plans:
        if plan.split is not None or plan.planner != CONTRACT:
            active = plan if plan.split is not None else None
    return active


def grow_forest(tasks: Iterable[Task], facts: PlanFacts, settings: Planning, stuck: bool = False) -> PlanForest:
    """The trees of the run's own tasks, in their order. `stuck`: the run would end now, so that nobody waits longer
    before a task or a child is split, or lost.
    """
    grower = _Grower(facts, settings, stuck)
    return PlanForest(tuple(grower.grow_tree(task) for task in tasks), facts.untried)


@dataclass(frozen=True)
class _Origin:
    """What a child is a child of."""

    task: Task
    depth: int
    plans: tuple[StoredPlan, ...]
    active: StoredPlan

    @property
    def is_renegotiated(self) -> bool:
        """Whether one of its contracts was changed, or could not be."""
        return self.plans[-1].planner == CONTRACT


class _Grower:
    """Trees from facts."""

    def __init__(self, facts: PlanFacts, settings: Planning, stuck: bool) -> None:
        self._facts = facts
        self._settings = settings
        self._stuck = stuck
        self._plans: Mapping[str, tuple[StoredPlan, ...]] = _group_plans(facts.plans)

    def grow_tree(self, task: Task, name: str = "", origin: _Origin | None = None) -> PlannedTask:
        depth = 0 if origin is None else origin.depth + 1
        plans = self._plans.get(task.id, ())
        active = find_active(plans)
        children: tuple[PlannedTask, ...] = ()
        if active is not None and active.split is not None:
            inner = _Origin(task, depth, plans, active)
            pairs = zip(active.split.nodes, active.children, strict=True)
            children = tuple(self.grow_tree(child, node.name, inner) for node, child in pairs)
        node = PlannedTask(task, depth, PlanState.OPEN, name, plans, children)
        if task.digest in self._facts.solved:
            is_joined = task.digest in self._facts.joined
            return replace(node, state=PlanState.JOINED if is_joined else PlanState.SOLVED)
        if active is not None:
            return self._judge_children(node, active, origin)
        if plans:  # the last split is none
            return self._plan_otherwise(node, f"split {plans[-1].number}: {plans[-1].problem}", origin)
        return self._judge_leaf(node, origin)

    def _judge_leaf(self, leaf: PlannedTask, origin: _Origin | None) -> PlannedTask:
        """One that was never split."""
        if origin is None:
            return self._judge_own(leaf)
        tries = self._facts.count_tries(leaf.task.id, origin.active.round)
        is_changed = origin.active.planner == CONTRACT and origin.active.changed == leaf.name
        leaf = replace(leaf, state=PlanState.RENEGOTIATED if is_changed else PlanState.OPEN)
        if not self._is_unmet(leaf.task, tries, self._settings.contract_rounds):
            return leaf
        if leaf.depth < self._settings.depth and (leaf.task.id in self._facts.compared or origin.is_renegotiated):
            return replace(leaf, step=PlanStep(leaf.task, 0, _explain_unmet(leaf, tries), leaf.depth))
        return self._judge_patience(leaf, origin)

    def _judge_patience(self, node: PlannedTask, origin: _Origin | None) -> PlannedTask:
        """One for which nothing is left but another contract, or to be sampled on."""
        if origin is None:
            return node
        tries = self._facts.count_tries(node.task.id, origin.active.round)
        if not origin.is_renegotiated and self._is_unmet(node.task, tries, self._settings.contract_rounds):
            number, reason = len(origin.plans), _explain_unmet(node, tries)
            return replace(node, step=PlanStep(origin.task, number, reason, origin.depth, origin.plans, node.name))
        is_lost = self._is_unmet(node.task, tries, PATIENCE * self._settings.contract_rounds)
        return replace(node, state=PlanState.GIVEN_UP, is_lost=True) if is_lost else node

    def _judge_own(self, leaf: PlannedTask) -> PlannedTask:
        tries = self._facts.count_tries(leaf.task.id, 0)
        leaf = replace(leaf, state=PlanState.UNSPLIT)
        is_planned = self._settings.plan != "none" and leaf.task.id not in self._facts.faulty
        if not is_planned or not self._is_unmet(leaf.task, tries, self._settings.plan_after):
            return leaf
        return replace(leaf, step=PlanStep(leaf.task, 0, f"unsolved after {_count_rounds(tries)}", 0))

    def _is_unmet(self, task: Task, tries: int, patience: int) -> bool:
        """Whether a task was tried for as long as it is tried before something else is."""
        return tries >= (1 if self._stuck else patience) or task.id in self._facts.untried

    def _judge_children(self, node: PlannedTask, active: StoredPlan, origin: _Origin | None) -> PlannedTask:
        """One whose plan holds."""
        lost = [child.name for child in node.children if child.is_lost]
        if lost:
            return self._plan_otherwise(node, f"split {active.number}: {', '.join(lost)} was given up", origin)
        if any(child.state not in (PlanState.SOLVED, PlanState.JOINED) for child in node.children):
            return node
        if (node.task.id, active.number) not in self._facts.tried_joins:
            return replace(node, state=PlanState.JOINING)
        reason = f"split {active.number}: its nodes are solved, and the program joined from theirs is wrong"
        return self._plan_otherwise(replace(node, state=PlanState.JOIN_FAILED), reason, origin)

    def _plan_otherwise(self, node: PlannedTask, reason: str, origin: _Origin | None) -> PlannedTask:
        """The task's next split, or that it is given up."""
        splits = [plan for plan in node.plans if plan.planner != CONTRACT]
        is_used_up = splits[-1].split is None and splits[-1].planner == STATIC
        if is_used_up or len(splits) >= self._settings.splits:
            return self._judge_patience(replace(node, state=PlanState.GIVEN_UP), origin)
        return replace(node, step=PlanStep(node.task, len(node.plans), reason, node.depth, node.plans))


def _group_plans(plans: Iterable[StoredPlan]) -> dict[str, tuple[StoredPlan, ...]]:
    """By task, in the order of their numbers."""
    plans_of: dict[str, tuple[StoredPlan, ...]] = {}
    for plan in sorted(plans, key=lambda plan: plan.number):
        plans_of[plan.task] = (*plans_of.get(plan.task, ()), plan)
    return plans_of


def _explain_unmet(node: PlannedTask, tries: int) -> str:
    return f"{node.name}: no program met its contract in {_count_rounds(tries)}"


def _count_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"
