"""The kinds of tasks that the guardian helps with, and those that it harms (table 2).

A task's class is what its author's own program needs: the target reads it off (`Classified`). Tasks without a
program of their own, and of targets that cannot tell, are in no class.
"""

from __future__ import annotations

from collections.abc import Mapping

from opsmith.models.roles import shorten_model
from opsmith.records import Task
from opsmith.targets import get_target
from opsmith.targets.protocols import Classified
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    count_solved,
    format_estimate,
    format_number,
    format_paper,
    select_estimates,
)
from opsmith_lab.evaluation.bars import chart_bars, make_namer, make_share_row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study

CLASSES = ("Arith-Once", "Arith-Reuse", "Shape-Once", "Shape-Reuse")
SUMS = ("Arith", "Shape", "Once", "Reuse")
MEASURES = ("pass@1", "pass@n")


def analyse_classes(study: Study) -> Analysis:
    """pass@1 and pass@n by class and arm, and what the guardian did to the candidates."""
    members = classify_tasks(study.tasks)
    rows = [
        make_share_row(study, name, series, arm, kind, ids)
        for series, arm in study.cells
        for name in MEASURES
        for kind, ids in members.items()
        if ids
    ]
    effects = _tabulate_effects(study)
    return Analysis(
        _write_headline(study, rows, members),
        rows,
        (_tabulate_sizes(study, members), _tabulate_rows(rows, members), effects),
        {"": _draw_figure(study, rows, _write_headline(study, rows))},
        _list_notes(study, members),
    )


def classify_tasks(tasks: tuple[Task, ...]) -> Mapping[str, tuple[str, ...]]:
    """Task ids by class, by half of its name, and all that have one."""
    kinds = {task.id: kind for task in tasks if (kind := _find_kind(task)) is not None}
    members = {name: tuple(task for task, kind in kinds.items() if kind == name) for name in CLASSES}
    members |= {half: tuple(task for task, kind in kinds.items() if half in kind.split("-")) for half in SUMS}
    return {**members, ALL: tuple(kinds)}


def _find_kind(task: Task) -> str | None:
    target = get_target(task.target)
    if task.impl is None or not isinstance(target, Classified):
        return None
    traits = target.find_traits(task, task.impl)
    return traits.name if traits else None


def _tabulate_rows(rows: list[Row], members: Mapping[str, tuple[str, ...]]) -> Grid:
    lines = [
        (
            row.of,
            shorten_model(row.model),
            row.arm,
            row.measure,
            format_estimate(row.estimate),
            _format_solved(row, members),
            format_paper(row.paper),
        )
        for kind in members
        for row in rows
        if row.of == kind
    ]
    return Grid("By class", ("class", "model", "arm", "measure", "value", "tasks solved", "paper"), lines)


def _format_solved(row: Row, members: Mapping[str, tuple[str, ...]]) -> str:
    """pass@n as the paper writes it: 7/8."""
    if row.measure != "pass@n" or row.estimate is None:
        return ""
    size = len(members[row.of])
    return f"{row.estimate.value * size:.3g}/{size}"


def _tabulate_sizes(study: Study, members: Mapping[str, tuple[str, ...]]) -> Grid:
    lines = []
    for kind in CLASSES:
        paper = next((p for p in study.experiment.paper if p.measure == "tasks" and kind in p.values), None)
        stated_size = f"{paper.values[kind]:.0f} ({paper.place})" if paper else "-"
        lines.append((kind, str(len(members[kind])), stated_size, ", ".join(members[kind])))
    return Grid("The classes of these tasks", ("class", "tasks", "paper, of its 26", "which"), lines)


def _tabulate_effects(study: Study) -> Grid:
    """Candidates by what the guardian did; mean over seeds."""
    lines = []
    for series in study.series_names:
        for arm in study.arm_names:
            cell = study.select_runs(series, arm)
            for effect in (
                cell[0].result.guardian if cell and any(sum(o.result.guardian.values()) for o in cell) else ()
            ):
                value = study.average_number(series, arm, lambda o, name=effect: float(o.result.guardian[name]))  # type: ignore[misc]
                lines.append((shorten_model(series), arm, effect, format_number(value, ",.1f")))
    return Grid("What the guardian did", ("model", "arm", "effect", "candidates (mean over seeds)"), lines)


def _write_headline(study: Study, rows: list[Row], members: Mapping[str, tuple[str, ...]] | None = None) -> str:
    """What each arm solves of the tasks that use a function once, and of those that use one again: in tasks where it is
    told how many there are, else as a share."""
    name = make_namer(study)
    phrases = []
    for half in ("Once", "Reuse"):
        own = [pair for pair in select_estimates(rows, "pass@n") if pair[0].of == half]
        solved = (count_solved(estimate) if members else f"{estimate.value:.3f}" for _, estimate in own)
        counts = ", ".join(f"{name(row)} {number}" for (row, _), number in zip(own, solved, strict=True))
        phrases += [f"{half} {counts}" + (f" of {len(members[half])}" if members else "")] if own else []
    what = "tasks solved" if members else "pass@n"
    return f"{what}: {'; '.join(phrases)}" if phrases else "no task is in a class"


def _list_notes(study: Study, members: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    unclassified = [task.id for task in study.tasks if task.id not in members[ALL]]
    return (
        (f"in no class (no program of their own, or the target cannot tell): {', '.join(unclassified)}",)
        if unclassified
        else ()
    )


def _draw_figure(study: Study, rows: list[Row], finding: str) -> Chart:
    charted_rows = [row for row in rows if row.measure == "pass@n" and row.of in CLASSES]
    return chart_bars(
        study, charted_rows, x=lambda row: row.of, series=make_namer(study), title=finding, x_title="class of the task"
    )
