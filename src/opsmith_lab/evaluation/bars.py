"""Bars of shares, side by side with their intervals and with what the paper says of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from opsmith.models.roles import shorten_model
from opsmith.report.figure_style import COLUMNS, PAGE
from opsmith_lab.evaluation.analysis import Row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study

Name = Callable[[Row], str]
AXES = {"pass@n": "pass@n: share of tasks solved", "pass@1": "pass@1: share of right samples"}
OVER = {"pass@n": "of pass@n over tasks"}  # what whiskers are over, where that is not samples
OVER_SAMPLES = "over samples"
_MANY_MARKS = 2  # models of the paper beside ours in a figure
_MANY_BARS = 8  # from here on a figure is as wide as both columns


def make_share_row(
    study: Study, name: str, series: str, arm: str, of: str = ALL, tasks: Sequence[str] | None = None
) -> Row:
    """pass@1 or pass@n of an arm beside the paper's; `tasks`: those of the group `of`, unless given."""
    estimate = study.estimate_pass_at_1 if name == "pass@1" else study.estimate_pass_at_n
    value = estimate(series, arm, study.tasks_by_group[of] if tasks is None else tasks)
    return Row(series, arm, name, of, value, study.find_paper(name, arm, series, of))


def chart_bars(
    study: Study,
    rows: Iterable[Row],
    *,
    x: Name,
    series: Name,
    title: str,
    x_title: str,
    y_title: str = AXES["pass@n"],
    in_tasks: bool = False,
) -> Chart:
    """A bar for each row, at `x` and in the colour of `series`; shares from 0 to 1, or numbers of all tasks."""
    size = len(study.tasks) if in_tasks else 1
    y_title = f"tasks solved of {size}" if in_tasks else y_title
    charted_rows = list(rows)
    points = [{"x": x(row), "series": series(row), **row.scale_ends(size)} for row in charted_rows]
    marks = [
        {"x": x(row), "slot": series(row), **mark, "y": size * mark["y"]}
        for row in charted_rows
        if row.estimate
        for mark in list_marks(study, row)
    ]
    if len({mark["series"] for mark in marks}) > _MANY_MARKS:  # they would cover each other: the page's table has them
        marks = []
    options = {"x": "x", "y": "y", "series": "series", "low": "low", "high": "high", "y_domain": [0.0, size]}
    width = COLUMNS if len(points) > _MANY_BARS else PAGE
    words = {"title": title, "x_title": x_title, "y_title": y_title, "width": width}
    over = ", ".join(dict.fromkeys(OVER.get(row.measure, OVER_SAMPLES) for row in charted_rows))
    return Chart("bars", points, {**options, **words, "paper": marks}, (over,))


def list_marks(study: Study, row: Row) -> Iterator[dict[str, Any]]:
    """What the paper says of a row: of the same model, or, beside a single one, of any. As marks, never as ours."""
    has_one_series = len(study.series_names) == 1
    for paper in study.experiment.paper:
        is_same = (paper.measure, paper.arm) == (row.measure, row.arm) and row.of in paper.values
        if is_same and (has_one_series or paper.model in ("", row.model)):
            yield {"y": paper.values[row.of], "series": f"paper: {shorten_model(paper.model) or paper.place}"}


def make_namer(study: Study) -> Name:
    """What a row's arm is called: see `Study.name_cell`."""
    return lambda row: study.name_cell(row.model, row.arm)
