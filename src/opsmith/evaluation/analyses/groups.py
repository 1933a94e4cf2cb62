"""How good each arm or model is in each group of tasks (table 4, figures 12 and 13)."""

from __future__ import annotations

from opsmith.evaluation.analysis import Analysis, Grid, Row, format_estimate, format_paper, shorten_model
from opsmith.evaluation.bars import draw_bars, make_namer
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import Spec

MEASURES = ("pass@1", "pass@n")


def analyse_groups(study: Study) -> Analysis:
    """pass@1 and pass@n by group, for every arm and model."""
    cells = [
        (series, arm) for series in study.series_names for arm in study.arm_names if study.select_runs(series, arm)
    ]
    rows = [
        _make_row(study, name, series, arm, group)
        for name in MEASURES
        for series, arm in cells
        for group in study.tasks_by_group
    ]
    grids = tuple(_tabulate_rows(study, rows, name) for name in MEASURES)
    figures = {"" if name == "pass@n" else "-pass1": _draw_figure(study, rows, name) for name in MEASURES}
    overall = [row for row in rows if row.measure == "pass@n" and row.of == ALL and row.estimate]
    headline = "pass@n: " + "; ".join(f"{shorten_model(row.model)}, {row.arm}: {row.estimate}" for row in overall)
    return Analysis(headline, tuple(rows), grids, figures)


def _make_row(study: Study, name: str, series: str, arm: str, group: str) -> Row:
    estimate = study.estimate_pass_at_1 if name == "pass@1" else study.estimate_pass_at_n
    value = estimate(series, arm, study.tasks_by_group[group])
    return Row(series, arm, name, group, value, study.find_paper(name, arm, series, group))


def _tabulate_rows(study: Study, rows: list[Row], name: str) -> Grid:
    own = [row for row in rows if row.measure == name]
    lines = []
    for group, tasks in study.tasks_by_group.items():
        for row in (row for row in own if row.of == group):
            lines.append(
                (
                    group,
                    str(len(tasks)),
                    shorten_model(row.model),
                    row.arm,
                    format_estimate(row.estimate),
                    format_paper(row.paper),
                )
            )
    return Grid(name, ("group", "tasks", "model", "arm", name, "paper"), tuple(lines))


def _draw_figure(study: Study, rows: list[Row], name: str) -> Spec:
    charted_rows = (row for row in rows if row.measure == name)
    who = make_namer(study) if len(study.arm_names) > 1 else lambda row: shorten_model(row.model)
    return draw_bars(
        study, charted_rows, x=lambda row: row.of, series=who, x_title="group", y_title=name.capitalize(), width=640
    )
