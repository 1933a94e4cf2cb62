"""How good each arm or model is in each group of tasks (table 4, figures 12 and 13)."""

from __future__ import annotations

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    count_solved,
    format_estimate,
    format_paper,
    select_estimates,
)
from opsmith_lab.evaluation.bars import AXES, chart_bars, make_namer, make_share_row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study

MEASURES = ("pass@1", "pass@n")


def analyse_groups(study: Study) -> Analysis:
    """pass@1 and pass@n by group, for every arm and model."""
    rows = [
        make_share_row(study, name, series, arm, group)
        for name in MEASURES
        for series, arm in study.cells
        for group in study.tasks_by_group
    ]
    grids = [_tabulate_rows(study, rows, name) for name in MEASURES]
    figures = {"" if name == "pass@n" else "-pass1": _draw_figure(study, rows, name) for name in MEASURES}
    return Analysis(_write_finding(study, rows, "pass@n", in_tasks=True), rows, grids, figures)


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
    return Grid(name, ("group", "tasks", "model", "arm", name, "paper"), lines)


def _draw_figure(study: Study, rows: list[Row], name: str) -> Chart:
    who = make_namer(study) if len(study.arm_names) > 1 else lambda row: shorten_model(row.model)
    own = [row for row in rows if row.measure == name]
    title = _write_finding(study, rows, name)
    return chart_bars(
        study, own, x=lambda row: row.of, series=who, title=title, x_title="group of tasks", y_title=AXES[name]
    )


def _write_finding(study: Study, rows: list[Row], name: str, in_tasks: bool = False) -> str:
    """What each arm comes to over all tasks, as a share or in tasks, and the groups in which no arm solves any."""
    who = make_namer(study) if len(study.arm_names) > 1 else lambda row: shorten_model(row.model)
    own = select_estimates(rows, name)
    overall = [(who(row), estimate) for row, estimate in own if row.of == ALL]
    shares = f"{name} over all tasks: {', '.join(f'{arm} {estimate}' for arm, estimate in overall)}"
    if name == "pass@1":
        return shares
    solved = {row.of for row, estimate in own if estimate.value > 0}
    unsolved = [group for group in study.tasks_by_group if group not in solved and group != ALL]
    counts = ", ".join(f"{arm} {count_solved(estimate)}" for arm, estimate in overall)
    words = f"tasks solved of {len(study.tasks)}: {counts}" if in_tasks else shares
    return words + (f"; none of {', '.join(unsolved)}" if unsolved else "")
