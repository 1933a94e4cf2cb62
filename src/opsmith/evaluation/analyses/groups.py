"""How good is each arm or model in each group of tasks? (Table 4, figures 12 and 13.)"""

from __future__ import annotations

from opsmith.evaluation.bars import arm_in, bars
from opsmith.evaluation.found import Analysis, Grid, Row, measured, short, stated
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import Spec

MEASURES = ("pass@1", "pass@n")


def groups(study: Study) -> Analysis:
    """pass@1 and pass@n by group, for every arm and model."""
    cells = [(series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    rows = [
        _row(study, name, series, arm, group) for name in MEASURES for series, arm in cells for group in study.groups
    ]
    grids = tuple(_grid(study, rows, name) for name in MEASURES)
    figures = {"" if name == "pass@n" else "-pass1": _figure(study, rows, name) for name in MEASURES}
    whole = [row for row in rows if row.measure == "pass@n" and row.of == ALL and row.found]
    headline = "pass@n: " + "; ".join(f"{short(row.model)}, {row.arm}: {row.found}" for row in whole)
    return Analysis(headline, tuple(rows), grids, figures)


def _row(study: Study, name: str, series: str, arm: str, group: str) -> Row:
    estimate = study.pass_at_1 if name == "pass@1" else study.pass_at_n
    found = estimate(series, arm, study.groups[group])
    return Row(series, arm, name, group, found, study.paper(name, arm, series, group))


def _grid(study: Study, rows: list[Row], name: str) -> Grid:
    own = [row for row in rows if row.measure == name]
    lines = []
    for group, tasks in study.groups.items():
        for row in (row for row in own if row.of == group):
            lines.append((group, str(len(tasks)), short(row.model), row.arm, measured(row.found), stated(row.paper)))
    return Grid(name, ("group", "tasks", "model", "arm", name, "paper"), tuple(lines))


def _figure(study: Study, rows: list[Row], name: str) -> Spec:
    shown = (row for row in rows if row.measure == name)
    who = arm_in(study) if len(study.arms) > 1 else lambda row: short(row.model)
    return bars(study, shown, x=lambda row: row.of, series=who, x_title="group", y_title=name.capitalize(), width=640)
