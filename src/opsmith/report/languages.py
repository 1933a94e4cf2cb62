"""Runs of one problem in several languages: a row for each problem, a column for each language.

Several runs of one language are one column. Problems are told by what they compute (`results.problems`), not by names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
            both = [cell] if earlier is None else [earlier, cell]
            best = max(both, key=lambda own: (own.is_solved, own.gain or 1.0, own.row.rate))
            counts = {name: sum(getattr(own, name) for own in both) for name in ("right", "verdicts", "unjudged")}
            cells[view.target][key] = replace(best, **counts)
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


def tabulate_languages(table: LanguageTable) -> DataTable:
    """A row for each language."""
    rows = [
        (
            column.target,
            len(column.runs),
            Said(f"{column.solved}/{column.problems}", column.solved),
            column.right,
            column.verdicts,
            Said(
                f"{column.unjudged:,}" + (f" ({column.unjudged_share:.1%})" if column.unjudged else ""),
                column.unjudged,
            ),
            column.usage,
        )
        for column in table.columns
    ]
    numbers = dict.fromkeys(("runs", "solved", "right", "verdicts", "unjudged"), COUNT)
    return DataTable("languages", {"language": TEXT, **numbers, "cost": USD}, rows, ("runs", "verdicts"))


def tabulate_by_language(table: LanguageTable) -> DataTable:
    """A row for each problem, a column for each language: its best run, beside the samples of all its runs."""
    rows = [[row.name, *map(_say_cell, row.cells)] for row in table.rows]
    columns = dict.fromkeys(("problem", *(column.target for column in table.columns)), TEXT)
    return DataTable("problems by language", columns, rows)


def _say_cell(cell: LanguageCell | None) -> Said | None:
    if cell is None:
        return None
    gain = f", {cell.gain:.2f}x" if cell.gain is not None else ""
    words = f"round {cell.row.round}, rate {cell.row.rate:.3f}{gain}" if cell.is_solved else cell.row.state
    counts = {name: getattr(cell, name) for name in ("right", "verdicts", "unjudged")}
    best = {"run": cell.run, "task": cell.row.id, "success_rate": cell.row.rate, "gain": cell.gain}
    value = {"solved": cell.is_solved, **counts, "best": best if cell.is_solved else None}
    unjudged = f", {cell.unjudged} unjudged" if cell.unjudged else ""
    note = f"{cell.right:,} right of {cell.verdicts:,}{unjudged}"
    return Said(words, value, ("task", cell.row.id), note, run=cell.run, shade="good" * cell.is_solved)
