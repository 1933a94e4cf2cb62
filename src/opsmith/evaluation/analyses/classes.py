"""Which kinds of tasks does the guardian help with, and which does it harm? (Table 2.)

A task's class is what its author's own program needs: the target reads it off (`targets.traits`). Tasks without a
program of their own, and of targets that cannot tell, are in no class.
"""

from __future__ import annotations

from collections.abc import Mapping

from opsmith.evaluation.bars import arm_in, bars
from opsmith.evaluation.found import Analysis, Grid, Row, measured, number, short, stated
from opsmith.evaluation.study import ALL, Study
from opsmith.records import Task
from opsmith.report.figures import Spec
from opsmith.targets import get_target
from opsmith.targets.traits import Classified

CLASSES = ("Arith-Once", "Arith-Reuse", "Shape-Once", "Shape-Reuse")
SUMS = ("Arith", "Shape", "Once", "Reuse")
MEASURES = ("pass@1", "pass@n")


def classes(study: Study) -> Analysis:
    """pass@1 and pass@n by class and arm, and what the guardian did to the candidates."""
    members = classified(study.tasks)
    cells = [(series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    rows = [
        _row(study, name, series, arm, kind, ids)
        for series, arm in cells
        for name in MEASURES
        for kind, ids in members.items()
        if ids
    ]
    effects = _effects(study)
    return Analysis(
        _headline(rows),
        tuple(rows),
        (_sizes(study, members), _grid(rows, members), effects),
        {"": _figure(study, rows)},
        _notes(study, members),
    )


def classified(tasks: tuple[Task, ...]) -> Mapping[str, tuple[str, ...]]:
    """Task ids by class, by half of its name, and all that have one."""
    kinds = {task.id: kind for task in tasks if (kind := _kind(task)) is not None}
    made = {name: tuple(task for task, kind in kinds.items() if kind == name) for name in CLASSES}
    made |= {part: tuple(task for task, kind in kinds.items() if part in kind.split("-")) for part in SUMS}
    return {**made, ALL: tuple(kinds)}


def _kind(task: Task) -> str | None:
    target = get_target(task.target)
    if task.impl is None or not isinstance(target, Classified):
        return None
    found = target.traits(task, task.impl)
    return found.name if found else None


def _row(study: Study, name: str, series: str, arm: str, kind: str, tasks: tuple[str, ...]) -> Row:
    estimate = study.pass_at_1 if name == "pass@1" else study.pass_at_n
    return Row(series, arm, name, kind, estimate(series, arm, tasks), study.paper(name, arm, series, kind))


def _grid(rows: list[Row], members: Mapping[str, tuple[str, ...]]) -> Grid:
    lines = [
        (row.of, short(row.model), row.arm, row.measure, measured(row.found), _of(row, members), stated(row.paper))
        for kind in members
        for row in rows
        if row.of == kind
    ]
    return Grid("By class", ("class", "model", "arm", "measure", "value", "tasks solved", "paper"), tuple(lines))


def _of(row: Row, members: Mapping[str, tuple[str, ...]]) -> str:
    """pass@n as the paper writes it: 7/8."""
    if row.measure != "pass@n" or row.found is None:
        return ""
    size = len(members[row.of])
    return f"{row.found.value * size:.3g}/{size}"


def _sizes(study: Study, members: Mapping[str, tuple[str, ...]]) -> Grid:
    lines = []
    for kind in CLASSES:
        paper = next((p for p in study.experiment.paper if p.measure == "tasks" and kind in p.values), None)
        stated_size = f"{paper.values[kind]:.0f} ({paper.place})" if paper else "-"
        lines.append((kind, str(len(members[kind])), stated_size, ", ".join(members[kind])))
    return Grid("The classes of these tasks", ("class", "tasks", "paper, of its 26", "which"), tuple(lines))


def _effects(study: Study) -> Grid:
    """Candidates by what the guardian did; mean over seeds."""
    lines = []
    for series in study.series:
        for arm in study.arms:
            cell = study.cell(series, arm)
            for effect in (
                cell[0].result.guardian if cell and any(sum(o.result.guardian.values()) for o in cell) else ()
            ):
                value = study.mean(series, arm, lambda o, name=effect: float(o.result.guardian[name]))  # type: ignore[misc]
                lines.append((short(series), arm, effect, number(value, ",.1f")))
    return Grid("What the guardian did", ("model", "arm", "effect", "candidates (mean over seeds)"), tuple(lines))


def _headline(rows: list[Row]) -> str:
    found = [row for row in rows if row.measure == "pass@n" and row.of in ("Reuse", "Once") and row.found]
    return "pass@n: " + "; ".join(f"{row.of}, {row.arm}: {row.found}" for row in found)


def _notes(study: Study, members: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    left = [task.id for task in study.tasks if task.id not in members[ALL]]
    return (f"in no class (no program of their own, or the target cannot tell): {', '.join(left)}",) if left else ()


def _figure(study: Study, rows: list[Row]) -> Spec:
    shown = (row for row in rows if row.measure == "pass@n" and row.of in CLASSES)
    return bars(study, shown, x=lambda row: row.of, series=arm_in(study), x_title="class of the task")
