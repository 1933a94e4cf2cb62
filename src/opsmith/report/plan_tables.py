"""Plans on a terminal: each split task as a tree of its nodes, and why it was split again."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from opsmith.records import printable
from opsmith.report.plans import PlannedView, summarise_plans, view_plans
from opsmith.report.tables import make_table, print_fact
from opsmith.store import Store


def print_plans(console: Console, store: Store, run: str, task: str | None = None) -> None:
    """The trees of a run's split tasks, or of the one that a task is or is a node of; nothing where there are none."""
    trees = view_plans(store, run)
    if not trees:
        return
    for tree in trees:
        if task is None or tree.has_task(task):
            console.print(grow_tree(tree))
            if any(len(node.plans) > 1 for node in tree.list_all()):
                console.print("the tree follows the split that holds; the table has all")
            console.print()
            console.print(tabulate_plans(tree.list_all()))
    if task is None:
        print_fact(console, f"plans   {summarise_plans(trees)}")


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
