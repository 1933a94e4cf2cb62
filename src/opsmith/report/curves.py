"""The figures that show what a run did: learning, pass@k, tokens and cost. Those of several runs: `many_runs`.

The x axis of the learning curve is what was read by the model, over all rounds so far: the paper's is one prompt's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opsmith.report.figures import bar_chart, line_chart, place_interval
from opsmith.report.rendering import Spec, annotate_figure, render_svg
from opsmith.report.views import RunView


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


def figures_of(run: RunView) -> list[Figure]:
    """The figures of a run. Without data a figure is left out."""
    return annotate_figures([figure for figure in _list_figures(run) if figure.spec["data"]["values"]], [run])


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


def _list_figures(run: RunView) -> Iterator[Figure]:
    yield _learning_curve(run)
    yield draw_pass_at_k([run])
    usages = [row.spent.usage for row in run.rounds]
    yield _per_round([usage.input_tokens for usage in usages], run, "tokens", "Input tokens", "")
    if any(usage.cost_usd for usage in usages):
        yield _per_round([usage.cost_usd for usage in usages], run, "cost", "Cost", ", by the prices known")


def _learning_curve(run: RunView) -> Figure:
    points = [
        {"x": row.input_tokens, "y": row.cumulative, "label": "" if row.level == "none" else row.level}
        for row in run.rounds
        if row.ended
    ]
    largest = run.overall.tasks
    caption = f"Tasks solved of {largest}, over the input tokens of all rounds so far; one point per round, in order. "
    caption += "Labels: which demonstrations were shown (H hard, M medium, E easy)."
    spec = line_chart(
        points,
        title="Learning curve",
        x_title="input tokens so far",
        y_title=f"tasks solved of {largest}",
        y_domain=(0, max(largest, 1) * 1.06),
    )
    return Figure("learning", "Learning curve", caption, spec)


def draw_pass_at_k(runs: Sequence[RunView]) -> Figure:
    """Both series of one run; of several runs each one's last."""
    several = len(runs) > 1
    points = [
        {
            "series": run.name if several else point.series,
            "x": point.k,
            **place_interval(point.estimate),
        }
        for run in runs
        for point in run.pass_at_k
        if not several or point.series == run.pass_at_k[-1].series
    ]
    caption = "The chance that k samples of a task hold a right one, mean over the tasks; whiskers: 95 %, over its "
    caption += "samples. After learning, each solved task counts by the round that solved it."
    spec = line_chart(
        points,
        title="pass@k",
        x_title="k, samples of each task",
        y_title="pass@k",
        log_x=True,
        y_domain=(0, 1),
    )
    return Figure("pass_at_k", "pass@k", caption, spec)


def _per_round(figures: Sequence[float | None], run: RunView, name: str, title: str, basis: str) -> Figure:
    rows = [{"x": str(row.number), "y": figure} for row, figure in zip(run.rounds, figures, strict=True)]
    title, unit = f"{title} per round", "USD" if name == "cost" else "input tokens"
    spec = bar_chart(rows, title=title, x_title="round", y_title=unit)
    return Figure(f"{name}_per_round", title, f"Billed in each round{basis}.", spec)
