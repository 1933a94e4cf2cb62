"""The figures that show what runs did. From views: learning, pass@k, tokens and cost, of one run or of several.

The x axis of the learning curve is what was read by the model, over all rounds so far: the paper's is one prompt's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opsmith.report.figures import bar_chart, line_chart
from opsmith.report.rendering import Spec, annotate_figure, render_svg
from opsmith.report.views import PassAt, RunView


@dataclass(frozen=True)
class Figure:
    name: str  # of its file
    title: str
    caption: str
    spec: Spec


@dataclass(frozen=True)
class DrawnFigure:
    """A figure, drawn for a page."""

    title: str
    caption: str
    svg: str


def draw_picture(figure: Figure) -> DrawnFigure:
    return DrawnFigure(figure.title, figure.caption, render_svg(figure.spec))


def figures_of(runs: Sequence[RunView]) -> list[Figure]:
    """The figures of a run, or of several in one: each run is a series. Without data a figure is left out."""
    return annotate_figures([figure for figure in _list_figures(runs) if figure.spec["data"]["values"]], runs)


def annotate_figures(figures: list[Figure], runs: Sequence[RunView], size: str = "") -> list[Figure]:
    """The figures, each saying where no language model made what it shows, how much it shows, and the seeds.

    `size`: how much, where that is not what the runs hold.
    """
    samplers = dict.fromkeys(run.model for run in runs if not run.is_language_model)
    mark = f"not a language model: {', '.join(samplers)}" if samplers else ""
    return [_annotate_figure(figure, mark, size or describe_size(runs)) for figure in figures]


def describe_size(runs: Sequence[RunView]) -> str:
    """How much the runs hold, for below a figure's title: `n = 26 tasks, 1,664 judged samples; seed 0`."""
    tasks = max((run.overall.tasks for run in runs), default=0)
    seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
    several = f"{len(runs)} runs, " if len(runs) > 1 else ""
    samples = sum(run.judged for run in runs)
    return f"n = {tasks} tasks, {several}{samples:,} judged samples; {'seeds' if ',' in seeds else 'seed'} {seeds}"


def _annotate_figure(figure: Figure, mark: str, size: str) -> Figure:
    """The same lines in the picture too: pictures travel without their captions."""
    caption = f"{figure.caption} N{mark[1:]}." if mark else figure.caption
    return replace(figure, caption=caption, spec=annotate_figure(figure.spec, [mark, size], figure.title))


def _list_figures(runs: Sequence[RunView]) -> Iterator[Figure]:
    several = len(runs) > 1
    series = "run" if several else None
    yield _learning_curve(runs, series)
    yield _pass_at_k(runs, several)
    yield _per_round(runs, series, "tokens", "Input tokens per round", "input tokens", "Billed in each round.")
    if any(row.spent.usage.cost_usd for run in runs for row in run.rounds):
        yield _per_round(runs, series, "cost", "Cost per round", "USD", "Billed in each round, by the prices known.")


def _learning_curve(runs: Sequence[RunView], series: str | None) -> Figure:
    points = [
        {
            "run": run.name,
            "tokens": row.input_tokens,
            "solved": row.cumulative,
            "level": "" if row.level == "none" or series is not None else row.level,
        }
        for run in runs
        for row in run.rounds
        if row.ended
    ]
    largest = max((run.overall.tasks for run in runs), default=1)
    caption = f"Tasks solved of {largest}, over the input tokens of all rounds so far; one point per round, in order. "
    caption += "" if series else "Labels: which examples were shown (H hard, M medium, E easy)."
    spec = line_chart(
        points,
        x="tokens",
        y="solved",
        series=series,
        label="level",
        title="Learning curve",
        x_title="input tokens so far",
        y_title=f"tasks solved of {largest}",
        y_domain=(0, max(largest, 1) * 1.06),
    )
    return Figure("learning", "Learning curve", caption, spec)


def _pass_at_k(runs: Sequence[RunView], several: bool) -> Figure:
    points = [
        _point_record(point, run.name if several else point.series)
        for run in runs
        for point in _shown_points(run, several)
    ]
    caption = "The chance that k samples of a task hold a right one, mean over the tasks; whiskers: 95 %, over its "
    caption += "samples. After learning, each solved task counts by the round that solved it."
    spec = line_chart(
        points,
        x="k",
        y="pass@k",
        series="series",
        low="low",
        high="high",
        title="pass@k",
        x_title="k, samples of each task",
        log_x=True,
        y_domain=(0, 1),
    )
    return Figure("pass_at_k", "pass@k", caption, spec)


def _shown_points(run: RunView, several: bool) -> Sequence[PassAt]:
    """Both series of one run; of several runs each one's last."""
    last = run.pass_at_k[-1].series if run.pass_at_k else ""
    return [point for point in run.pass_at_k if not several or point.series == last]


def _point_record(point: PassAt, series: str) -> dict[str, Any]:
    value = point.estimate
    return {"series": series, "k": point.k, "pass@k": value.value, "low": value.low, "high": value.high}


def _per_round(runs: Sequence[RunView], series: str | None, column: str, title: str, unit: str, caption: str) -> Figure:
    rows = []
    for run in runs:
        for row in run.rounds:
            spent = row.spent.usage
            figures = {"tokens": spent.input_tokens, "cost": spent.cost_usd}
            rows.append({"run": run.name, "round": str(row.number), column: figures[column]})
    spec = bar_chart(rows, x="round", y=column, series=series, title=title, x_title="round", y_title=unit)
    return Figure(f"{column}_per_round", title, caption, spec)
