"""Runs of one suite in several targets: a row per problem, a column per target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.records import printable
from opsmith.report.views import RunView, TaskRow
from opsmith.results.problems import problem_keys, task_keys
from opsmith.store import Store


@dataclass(frozen=True)
class ProblemRow:
    """One problem in each run. Two problems that have the same id in different runs are two rows."""

    task: str  # its id
    cells: tuple[TaskRow | None, ...]  # by run; None: the run was not asked for it


def have_several_targets(views: Sequence[RunView]) -> bool:
    return len({view.target for view in views}) > 1


def name_columns(views: Sequence[RunView]) -> list[str]:
    """The target of each run; with what the run is called where another run has that target too, or that alone where
    all have."""
    if not have_several_targets(views):
        return [view.label for view in views]
    counts = Counter(view.target for view in views)
    return [view.target if counts[view.target] == 1 else f"{view.target} {view.label}" for view in views]


def compared_keys(store: Store, views: Sequence[RunView]) -> list[Mapping[str, str]]:
    """By run and task, what tasks that can be compared share: of one target the text, else the problem."""
    read_keys = problem_keys if have_several_targets(views) else task_keys
    return [read_keys(store, view.id) for view in views]


def align_problems(store: Store, views: Sequence[RunView]) -> list[ProblemRow]:
    """Every problem with its task in each run, in the order of the first run that has it.

    Runs of one target are aligned by the ids of their tasks alone.
    """
    several = have_several_targets(views)
    keys = compared_keys(store, views) if several else [{row.id: row.id for row in view.tasks} for view in views]
    rows = [
        {(row.id, key[row.id]): row for row in view.tasks if row.id in key}
        for view, key in zip(views, keys, strict=True)
    ]
    problems = dict.fromkeys(problem for of_run in rows for problem in of_run)
    return [ProblemRow(problem[0], tuple(of_run.get(problem) for of_run in rows)) for problem in problems]


def problems_json(views: Sequence[RunView], rows: Sequence[ProblemRow]) -> list[dict[str, Any]]:
    """A record per problem, with the runs that were asked for it."""
    return [
        {
            "task": row.task,
            "runs": [
                {"run": view.id, "target": view.target, **task_json(cell)}
                for view, cell in zip(views, row.cells, strict=True)
                if cell is not None
            ],
        }
        for row in rows
    ]


def task_json(row: TaskRow) -> dict[str, Any]:
    return {"solved": row.state == "solved", "round": row.round, "success_rate": row.rate, "samples": row.judged}


def describe_task(row: TaskRow | None) -> str:
    """What a run made of a task, in a few words; a dash where it was not asked for it."""
    if row is None:
        return "–"
    if row.state == "solved":
        return f"round {row.round}, rate {row.rate:.3f}"
    return f"{row.state}, {row.right} right of {row.judged}" if row.judged else printable(row.state)
