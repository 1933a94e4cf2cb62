"""Figures of results as plain data: what is kept beside the numbers, and drawn again without a run.

Data first, drawing second: an analysis makes charts, `files` keeps them, and `draw_chart` draws them in today's look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from opsmith.errors import UsageError
from opsmith.models.roles import shorten_model
from opsmith.report.figures import bar_chart, interval_chart, line_chart
from opsmith.report.rendering import COLUMNS, PAGE, Spec, annotate_figure
from opsmith_lab.evaluation.analysis import Chart, ExperimentReport, Namer, Row
from opsmith_lab.evaluation.experiment import SEARCH, TUNER
from opsmith_lab.evaluation.learners import PREFIX
from opsmith_lab.evaluation.study import Study

DRAWINGS: Mapping[str, Callable[..., Spec]] = {"bars": bar_chart, "lines": line_chart, "intervals": interval_chart}
OVER = {"pass@n": "of pass@n over tasks"}  # what whiskers are over, where that is not samples
OVER_SAMPLES = "over samples"
EMBEDDED = "embedded model: a program sampler, not a language model"
SEARCHED = "search without a model: not a language model"
TUNED = "embedded tuner and analyst: they rewrite programs by rules and are no language models"
KNOWN_MINDS = "known minds: programs with planted behaviour, no language models"
BOTH = "embedded model (a program sampler) and search without a model: neither is a language model"
_MANY_MARKS = 2  # models of the paper beside ours in a figure
_MANY_BARS = 8  # from here on a figure is as wide as both columns


def draw_chart(chart: Chart) -> Spec:
    """The figure in today's look. Raises UsageError for a chart that no drawing of this version knows."""
    drawing = DRAWINGS.get(chart.drawing)
    if drawing is None:
        raise UsageError(f"chart: given the drawing {chart.drawing!r}; expected one of {', '.join(DRAWINGS)}")
    try:
        return annotate_figure(drawing(chart.points, **chart.options), chart.lines)
    except (TypeError, KeyError) as error:
        raise UsageError(f"chart of the drawing {chart.drawing!r}: {error}; try: run the experiment again") from None


def read_chart(data: Any) -> Chart:
    """A chart as JSON has it. Raises UsageError."""
    if not isinstance(data, dict) or {"drawing", "points", "options", "lines"} != data.keys():
        raise UsageError("chart: expected drawing, points, options and lines; try: run the experiment again")
    return Chart(data["drawing"], data["points"], data["options"], tuple(data["lines"]))


def chart_bars(
    study: Study,
    rows: Iterable[Row],
    *,
    x: Namer,
    series: Namer,
    title: str,
    x_title: str,
    y_title: str = "pass@n: share of tasks solved",
    in_tasks: bool = False,
) -> Chart:
    """A bar for each row, at `x` and in the colour of `series`, beside what the paper says of the same; shares from 0
    to 1, or numbers of all tasks."""
    size = len(study.tasks) if in_tasks else 1
    rows = list(rows)
    points = [{"x": x(row), "series": series(row), **row.scale_ends(size)} for row in rows]
    marks = [
        {"x": x(row), "slot": series(row), **mark, "y": size * mark["y"]}
        for row in rows
        if row.estimate
        for mark in _list_marks(study, row)
    ]
    if len({mark["series"] for mark in marks}) > _MANY_MARKS:  # they would cover each other: the page's table has them
        marks = []
    words = {"title": title, "x_title": x_title, "y_title": f"tasks solved of {size}" if in_tasks else y_title}
    size_options = {"y_domain": [0.0, size], "width": COLUMNS if len(points) > _MANY_BARS else PAGE}
    over = ", ".join(dict.fromkeys(OVER.get(row.measure, OVER_SAMPLES) for row in rows))
    return Chart("bars", points, {**words, **size_options, "paper": marks}, (over,))


def _list_marks(study: Study, row: Row) -> Iterator[dict[str, Any]]:
    """What the paper says of a row: of the same model, or, beside a single one, of any. As marks, never as ours."""
    has_one_series = len(study.series_names) == 1
    for paper in study.experiment.paper:
        is_same = (paper.measure, paper.arm) == (row.measure, row.arm) and row.of in paper.values
        if is_same and (has_one_series or paper.model in ("", row.model)):
            yield {"y": paper.values[row.of], "series": f"paper: {shorten_model(paper.model) or paper.place}"}


def describe_mark(study: Study) -> str:
    """The words that stand wherever results are no language model's; "" where every result is one's."""
    models = {run.result.model for run in study.observed if not run.result.is_language_model}
    if not models:
        return ""
    others = {model for model in models if not model.startswith(PREFIX)}
    words = SEARCHED if others == {SEARCH} else BOTH if SEARCH in models else EMBEDDED if others else ""
    words = TUNED if any(TUNER in model for model in models) else words  # a swarm with it too
    words = "; ".join(filter(None, [words, KNOWN_MINDS if others != models else ""]))
    return ("in part: " if any(run.result.is_language_model for run in study.observed) else "") + words


def mark_chart(report: ExperimentReport, chart: Chart) -> Chart:
    """The chart with what made it, how much it shows, and what its whiskers are."""
    over, own_size = (*chart.lines, "", "")[:2]
    size = f"n = {own_size or report.size}"
    if any(point.get("low") is not None for point in chart.points):
        size += f"; whiskers: 95 %, {over}"
    if chart.options.get("paper"):
        size += "; hollow: the paper's, of its 26 tasks"
    return replace(chart, lines=tuple(filter(None, (report.mark, size))))
