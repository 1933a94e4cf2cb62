"""The plans of a run in words: each task that was split as a tree of its nodes, with states, contracts and reasons.

What a state is, the plan book says (`learn.plans`); samples are counted here once, for pages and terminals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from opsmith.learn.plan_facts import read_forest
from opsmith.learn.plans import PlannedTask, PlanState, find_active
from opsmith.records import Task, printable
from opsmith.report.drawing import draw_dataflow
from opsmith.report.tables import make_table
from opsmith.report.verdicts import label_of
from opsmith.splits import Border, PlanNode, Split
from opsmith.store import Store
from opsmith.store.endings import JoinRow, list_joins
from opsmith.store.plans import CONTRACT, StoredPlan
from opsmith.store.queries import KeptExperience
from opsmith.targets.programs import Dataflow, Edge, Node

REACHED = frozenset({PlanState.SOLVED, PlanState.JOINED})
FAILED = frozenset({PlanState.GIVEN_UP, PlanState.JOIN_FAILED})


@dataclass(frozen=True)
class PlanLine:
    """One attempt at splitting a task, or at changing a contract of its split."""

    number: int
    planner: str
    reason: str
    round: int  # the first one that could use it
    what: str  # that came of it; "": it was split into `children`
    children: tuple[ChildLine, ...]
    is_active: bool  # it holds now

    def __str__(self) -> str:
        """What came of it, on one line."""
        names = ", ".join(f"{child.name} ({child.right} of {child.verdicts})" for child in self.children)
        return "; ".join(filter(None, (self.what, f"into {names}" if names else ""))) + (" (holds)" * self.is_active)


@dataclass(frozen=True)
class ChildLine:
    """A node of a split, whether that holds or not."""

    task: str  # its id
    name: str
    verdicts: int
    right: int


@dataclass(frozen=True)
class JoinLine:
    """One program that was joined from those of the nodes."""

    sample: str
    round: int
    label: str
    passed: bool


@dataclass(frozen=True)
class PlannedView:
    """A task that was split, or a node of one."""

    task: str  # its id
    name: str  # in the split; of a task of the run its id
    depth: int
    state: str
    is_reached: bool  # a right program is known
    is_failed: bool
    is_joined: bool  # by a joined program
    takes: tuple[str, ...]  # in words: `x: fp32 [N, K]`
    gives: tuple[str, ...]
    code: str
    fns: tuple[str, ...]  # that are offered; (): all of the task's
    verdicts: int  # samples that were judged, joined ones included
    right: int
    round: int | None  # that solved it
    rate: float | None  # of its experience
    sample: str | None  # that solved it
    plans: tuple[PlanLine, ...]
    joins: tuple[JoinLine, ...]
    children: tuple[PlannedView, ...]
    picture: str | None  # of the split that holds, as an SVG

    @property
    def contract(self) -> str:
        """On one line."""
        return f"{', '.join(self.takes) or 'nothing'} → {', '.join(self.gives) or 'nothing'}"

    def list_all(self) -> Iterator[PlannedView]:
        """Itself, and then all nodes below it."""
        yield self
        for child in self.children:
            yield from child.list_all()

    def has_task(self, name: str) -> bool:
        """Whether a task (its id) is this one or a node of any split below it, of one that holds no more too."""
        names = {child.task for node in self.list_all() for line in node.plans for child in line.children}
        return name == self.task or name in names


@dataclass(frozen=True)
class PlanSummary:
    """What plans came to in a run."""

    split: int  # tasks of the run that have been split
    solved: int  # of these, by joining or otherwise
    children: int  # of splits that hold
    children_solved: int
    changes: int  # contracts that were renegotiated
    further: int  # splits after the first one of a task or node

    def __str__(self) -> str:
        children = f"{self.children_solved} of {self.children} nodes"
        changes = f"splits after a first one: {self.further}, changed contracts: {self.changes}"
        return f"{self.solved} of {self.split} split tasks are solved, {children}; {changes}"


def view_plans(store: Store, run: str) -> tuple[PlannedView, ...]:
    """The trees of the tasks that were split, in the run's order; () where none was. `run` is a whole id."""
    forest = read_forest(store, run)
    trees = [tree for tree in forest.trees if tree.plans] if forest is not None else []
    if not trees:
        return ()
    digests = {task.id: task.digest for task in (*store.read_tasks(run), *store.read_children(run))}
    counts: dict[str, Counter[str]] = {}  # by digest: two splits may share a node
    for tally in store.read_tallies(run, with_children=True):
        counts.setdefault(digests[tally.task], Counter()).update(verdicts=tally.judged, right=tally.right)
    solutions = {
        solution.experience.task.digest: solution for solution in store.read_experiences(run, with_children=True)
    }
    gardener = _Gardener(counts, solutions, list_joins(store, run))
    return tuple(gardener.view_task(tree) for tree in trees)


def summarise_plans(trees: Iterable[PlannedView]) -> PlanSummary:
    """In figures."""
    trees = tuple(trees)
    children = [node for tree in trees for node in tree.list_all() if node.depth]
    lines = [line for tree in trees for node in tree.list_all() for line in node.plans]
    changes = sum(line.planner == CONTRACT for line in lines)
    splitters = sum(any(line.planner != CONTRACT for line in node.plans) for tree in trees for node in tree.list_all())
    return PlanSummary(
        split=len(trees),
        solved=sum(tree.is_reached for tree in trees),
        children=len(children),
        children_solved=sum(child.is_reached for child in children),
        changes=changes,
        further=len(lines) - changes - splitters,
    )


def write_border(border: Border) -> str:
    """
    >>> write_border(Border("h", "fp32", ("K", "N")))
    'h: fp32 [K, N]'
    """
    return f"{border.name}: {border.dtype} [{', '.join(border.dims)}]"


class _Gardener:
    """Makes views of trees."""

    def __init__(
        self, counts: Mapping[str, Counter[str]], solutions: Mapping[str, KeptExperience], joins: Iterable[JoinRow]
    ) -> None:
        self._counts = counts
        self._solutions = solutions
        self._joins: dict[str, list[JoinLine]] = {}
        for row in joins:
            line = JoinLine(row.sample, row.round, label_of(row.stage, row.outcome), row.outcome == "passed")
            self._joins.setdefault(row.task, []).append(line)

    def view_task(self, planned: PlannedTask, node: PlanNode | None = None, split: Split | None = None) -> PlannedView:
        task, counts = planned.task, self._counts.get(planned.task.digest, Counter())
        solution = self._solutions.get(task.digest)
        active = find_active(planned.plans)
        held = active.split if active is not None else None
        children = tuple(
            self.view_task(child, inner, held)
            for child, inner in zip(planned.children, held.nodes if held is not None else (), strict=False)
        )
        return PlannedView(
            task=task.id,
            name=planned.name or task.id,
            depth=planned.depth,
            state=planned.state.value,
            is_reached=planned.state in REACHED,
            is_failed=planned.state in FAILED,
            is_joined=planned.state is PlanState.JOINED,
            takes=() if node is None or split is None else tuple(_word_takes(node, split)),
            gives=() if node is None else tuple(map(write_border, node.gives)),
            code="" if node is None else node.code,
            fns=() if node is None else node.fns,
            verdicts=counts["verdicts"],
            right=counts["right"],
            round=None if solution is None else solution.experience.round,
            rate=None if solution is None else solution.experience.success_rate,
            sample=None if solution is None else solution.sample,
            plans=tuple(self._word_plan(plan, active) for plan in planned.plans),
            joins=tuple(self._joins.get(task.id, ())),
            children=children,
            picture=None if held is None else draw_split(task, held, children),
        )

    def _word_plan(self, plan: StoredPlan, active: StoredPlan | None) -> PlanLine:
        what, nodes = f"none: {plan.lack}", () if plan.split is None else plan.split.nodes
        if plan.split is not None:
            contract = _word_contract(plan.split, plan.changed)
            what = f"another contract of {plan.changed}: {contract}" if plan.planner == CONTRACT else ""
        counts = [self._counts.get(child.digest, Counter()) for child in plan.children]
        children = tuple(
            ChildLine(child.id, node.name, count["verdicts"], count["right"])
            for child, node, count in zip(plan.children, nodes, counts, strict=False)
        )
        return PlanLine(plan.number, plan.planner, plan.reason, plan.round, what, children, plan == active)


def _word_takes(node: PlanNode, split: Split) -> Iterator[str]:
    """What it takes: of a border its contract, of an input of the task its name."""
    borders = {border.name: border for maker in split.nodes for border in maker.gives}
    for name in node.takes:
        yield write_border(borders[name]) if name in borders else name


def _word_contract(split: Split, name: str) -> str:
    """What a node takes and gives."""
    node = next((node for node in split.nodes if node.name == name), None)
    if node is None:
        return ""
    return f"{', '.join(_word_takes(node, split))} → {', '.join(map(write_border, node.gives))}"


def draw_split(task: Task, split: Split, children: Iterable[PlannedView]) -> str | None:
    """The flow of data through the nodes of a split, each with its state."""
    states = {child.name: child.state for child in children}
    makers = {border.name: node.name for node in split.nodes for border in node.gives}
    borders = {border.name: border for node in split.nodes for border in node.gives}
    inputs = list(dict.fromkeys(name for node in split.nodes for name in node.takes if name not in makers))
    nodes = [
        *(Node(f"in {name}", name, kind="input") for name in inputs),
        *(Node(f"node {node.name}", node.name, states.get(node.name, "")) for node in split.nodes),
        *(Node(f"out {name}", name, kind="output") for name in split.outputs),
    ]
    edges = [
        Edge(
            f"node {makers[name]}" if name in makers else f"in {name}",
            f"node {node.name}",
            _word_type(borders[name]) if name in borders else "",
        )
        for node in split.nodes
        for name in node.takes
    ]
    edges += [Edge(f"node {makers[name]}", f"out {name}", _word_type(borders[name])) for name in split.outputs]
    try:
        return draw_dataflow(Dataflow(tuple(nodes), tuple(edges)), f"Nodes of {task.id} and what passes between them")
    except ValueError:  # a split that names what no node makes: it was refused, and its words stand beside
        return None


def _word_type(border: Border) -> str:
    return f"{border.dtype} [{', '.join(border.dims)}]"


def print_plans(console: Console, trees: Iterable[PlannedView], task: str | None = None) -> None:
    """Trees of split tasks; `task`: only the one that it is or is a node of."""
    for tree in trees:
        if task is None or tree.has_task(task):
            console.print(grow_tree(tree))
            if any(len(node.plans) > 1 for node in tree.list_all()):
                console.print("the tree follows the split that holds; the table has all")
            console.print()
            console.print(tabulate_plans(tree.list_all()))


def grow_tree(planned: PlannedView, above: Tree | None = None) -> Tree:
    """A line for each node: state, contract, samples, and the sample that solved it."""
    words = printable(_describe_planned(planned))
    tree = Tree(words) if above is None else above.add(words)
    for child in planned.children:
        grow_tree(child, tree)
    return tree


def tabulate_plans(planned: Iterable[PlannedView]) -> Table:
    """A row for each attempt at a split, and for each program that was joined."""
    grid = make_table("split of", "planner", "before round", "why", "what came of it", right=("before round",))
    for node in planned:
        for line in node.plans:
            cells = (f"{node.task} {line.number}", line.planner, str(line.round), line.reason, str(line))
            grid.add_row(*map(printable, cells))
        for join in node.joins:
            what = f"{join.label}, sample {join.sample[:12]}"
            grid.add_row(printable(node.task), "join", str(join.round), "all nodes are solved", what)
    return grid


def _describe_planned(planned: PlannedView) -> str:
    counts = f"{planned.right:,} right of {planned.verdicts:,}" if planned.verdicts else "no sample yet"
    solved = f", sample {planned.sample[:12]}" if planned.sample else ""
    contract = f"  {planned.contract}" if planned.depth else ""
    return f"{planned.name}  [{planned.state}] {counts}{solved}{contract}"
