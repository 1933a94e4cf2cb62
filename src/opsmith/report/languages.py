"""Runs of one problem in several languages: a row for each problem, a column for each language.

Several runs of one language are one column. Problems are told by what they compute (`results.problems`), not by names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.records import Outcome, Usage
from opsmith.report.record import COUNT, TEXT, USD, DataTable, Said
from opsmith.report.views import RunView, TaskRow
from opsmith.results.bests import list_best
from opsmith.results.problems import problem_keys
from opsmith.store import Store
from opsmith.store.pages import count_kinds


@dataclass(frozen=True)
class LanguageCell:
    """What runs of one language made of one problem."""

    run: str  # the one that did best
    row: TaskRow  # its
    gain: float | None  # of the best program over the one that the task was solved with; None: it was not made better
    right: int  # samples of all runs
    verdicts: int
    unjudged: int  # samples without a verdict

    @property
    def is_solved(self) -> bool:
        return self.row.state == "solved"

    @property
    def best(self) -> str:
        """In a few words."""
        if not self.is_solved:
            return self.row.state
        gain = f", {self.gain:.2f}x" if self.gain is not None else ""
        return f"round {self.row.round}, rate {self.row.rate:.3f}{gain}"

    @property
    def samples(self) -> str:
        unjudged = f", {self.unjudged} unjudged" if self.unjudged else ""
        return f"{self.right:,} right of {self.verdicts:,}{unjudged}"


@dataclass(frozen=True)
class ProblemLanguages:
    """One problem in each language."""

    name: str  # of its task in the first run that has it
    cells: tuple[LanguageCell | None, ...]  # None: it was not asked for there


@dataclass(frozen=True)
class LanguageColumn:
    """All of one language."""

    target: str
    runs: tuple[str, ...]
    problems: int
    solved: int
    right: int
    verdicts: int
    unjudged: int
    usage: Usage

    @property
    def unjudged_share(self) -> float | None:
        """None: nothing was sampled."""
        return self.unjudged / (self.unjudged + self.verdicts) if self.unjudged + self.verdicts else None


@dataclass(frozen=True)
class LanguageTable:
    """All problems of some runs in all their languages."""

    columns: tuple[LanguageColumn, ...]
    rows: tuple[ProblemLanguages, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "languages": [_describe_column(column) for column in self.columns],
            "problems": [
                {
                    "problem": row.name,
                    "languages": {
                        column.target: _describe_cell(cell)
                        for column, cell in zip(self.columns, row.cells, strict=True)
                        if cell is not None
                    },
                }
                for row in self.rows
            ],
        }


def read_languages(store: Store, views: Sequence[RunView]) -> LanguageTable | None:
    """None: all runs are of one language."""
    targets = list(dict.fromkeys(view.target for view in views))
    if len(targets) < 2:
        return None
    cells: dict[str, dict[str, LanguageCell]] = {target: {} for target in targets}
    names: dict[str, str] = {}
    for view in views:
        for key, name, cell in _list_cells(store, view):
            names.setdefault(key, name)
            earlier = cells[view.target].get(key)
            cells[view.target][key] = cell if earlier is None else _merge_cells(earlier, cell)
    rows = (ProblemLanguages(name, tuple(cells[target].get(key) for target in targets)) for key, name in names.items())
    columns = (_sum_column([view for view in views if view.target == target], cells[target]) for target in targets)
    return LanguageTable(tuple(columns), tuple(rows))


def _list_cells(store: Store, view: RunView) -> list[tuple[str, str, LanguageCell]]:
    """(problem, task's id, cell) of a run's own tasks."""
    keys, unjudged = problem_keys(store, view.id), _count_unjudged(store, view)
    gains = {best.experience.task.id: best.experience.gain for best in list_best(store, view.id)}
    return [
        (
            keys[row.id],
            row.id,
            LanguageCell(view.id, row, gains.get(row.id), row.right, row.judged, unjudged[row.id]),
        )
        for row in view.tasks
        if row.id in keys
    ]


def _count_unjudged(store: Store, view: RunView) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number in {row.number for row in view.rounds}:
        for kind, samples in count_kinds(store, view.id, number).items():
            counts[kind.task] += samples if kind.outcome in (None, Outcome.UNJUDGED) else 0
    return counts


def _merge_cells(first: LanguageCell, second: LanguageCell) -> LanguageCell:
    best = max(first, second, key=lambda cell: (cell.is_solved, cell.gain or 1.0, cell.row.rate))
    counts = (getattr(first, name) + getattr(second, name) for name in ("right", "verdicts", "unjudged"))
    return LanguageCell(best.run, best.row, best.gain, *counts)


def _sum_column(views: Sequence[RunView], cells: dict[str, LanguageCell]) -> LanguageColumn:
    own = list(cells.values())
    return LanguageColumn(
        views[0].target,
        tuple(view.id for view in views),
        len(own),
        sum(cell.is_solved for cell in own),
        sum(cell.right for cell in own),
        sum(cell.verdicts for cell in own),
        sum(cell.unjudged for cell in own),
        Usage.total([view.usage for view in views]),
    )


def _describe_column(column: LanguageColumn) -> dict[str, Any]:
    counts = {name: getattr(column, name) for name in ("problems", "solved", "right", "verdicts", "unjudged")}
    cost = {"unjudged_share": column.unjudged_share, "cost_usd": column.usage.cost_usd}
    return {"target": column.target, "runs": list(column.runs), **counts, **cost}


def _describe_cell(cell: LanguageCell) -> dict[str, Any]:
    best = {"run": cell.run, "task": cell.row.id, "success_rate": cell.row.rate, "gain": cell.gain}
    counts = {"right": cell.right, "verdicts": cell.verdicts, "unjudged": cell.unjudged}
    return {"solved": cell.is_solved, **counts, "best": best if cell.is_solved else None}


def tabulate_languages(table: LanguageTable) -> DataTable:
    """A row for each language."""
    rows = [
        (
            column.target,
            len(column.runs),
            Said(f"{column.solved}/{column.problems}", column.solved),
            column.right,
            column.verdicts,
            Said(describe_unjudged(column), column.unjudged),
            column.usage,
        )
        for column in table.columns
    ]
    numbers = dict.fromkeys(("runs", "solved", "right", "verdicts", "unjudged"), COUNT)
    return DataTable("languages", {"language": TEXT, **numbers, "cost": USD}, rows, ("runs", "verdicts"))


def describe_unjudged(column: LanguageColumn) -> str:
    """How many samples, and which share of all."""
    share = column.unjudged_share
    return f"{column.unjudged:,}" + (f" ({share:.1%})" if share else "")
