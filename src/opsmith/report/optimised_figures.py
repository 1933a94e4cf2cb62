"""The figures of a run's optimisation rounds: states by round, fast_p, gains, share of the limit; steps of one task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opsmith.report.curves import Figure, annotate_figures, figures_of
from opsmith.report.figures import bar_chart, interval_chart, line_chart, place_interval
from opsmith.report.front_figures import draw_fronts
from opsmith.report.optimised import tabulate_states
from opsmith.report.tables import count_noun
from opsmith.report.views import RunView
from opsmith.results.optimisation import OptimisedRun, OptimisedTask, PartnerMetrics
from opsmith.results.speedups import estimate_fast_share
from opsmith.store.rows import OPTIMISATION

BEFORE, AFTER = "start program", "best program"


def list_figures(run: RunView) -> list[Figure]:
    """All figures of a run."""
    figures = figures_of(run)
    if run.optimised is not None:
        tasks = run.optimised.result.tasks
        attempts = sum(len(task.steps) for task in tasks)
        size = f"n = {count_noun(len(tasks), 'task')}, {count_noun(attempts, 'attempt')}; seed {run.seed}"
        figures += annotate_figures(_draw_optimisation(run.optimised.result), [run], size)
    if run.fronts is not None:
        drawn = draw_fronts(run.fronts.fronts)
        figures += annotate_figures([drawn] if drawn is not None else [], [run])
    return figures


def _draw_optimisation(run: OptimisedRun) -> list[Figure]:
    """Without data a figure is left out."""
    figures = (_draw_states(run), _draw_fast_shares(run), _draw_gains(run), _draw_limits(run), _draw_within(run))
    return [figure for figure in figures if figure.spec["data"]["values"]]


def draw_steps(task: OptimisedTask) -> Figure | None:
    """A task's ratios to its start program, attempt by attempt; None: none can be said."""
    points = [
        {"x": number, **place_interval(step.to_start), "mark": step.is_kept}
        for number, step in enumerate(task.steps, 1)
        if step.to_start is not None
    ]
    if not points:
        return None
    caption = (
        f"{task.task}: each right attempt's ratio to the start program, in the order of the attempts; filled: it was"
    )
    caption += " kept. Above 1 it is the better one. Whiskers or bands: 95 % intervals, of the measuring."
    spec = line_chart(
        points,
        title=f"Attempts at {task.task}",
        x_title="attempt",
        y_title="ratio to the start program",
    )
    return Figure("attempts", f"Attempts at {task.task}", caption, spec)


def _draw_states(run: OptimisedRun) -> Figure:
    table = tabulate_states(run)
    names, counts = list(table.columns)[2:], [row[2:] for row in table.rows]
    occurring = [place for place in range(len(names)) if any(row[place] for row in counts)]
    rows = [
        {"x": f"{number}{' opt.' * (phase == OPTIMISATION)}", "series": names[place], "y": own[place]}
        for number, phase, *own in table.rows
        for place in occurring
    ]
    caption = "Samples of each round by the state in which they ended; opt.: rounds that make right programs better."
    spec = bar_chart(rows, title="States by round", x_title="round", y_title="samples")
    return Figure("states", "States by round", caption, spec)


def _draw_fast_shares(run: OptimisedRun) -> Figure:
    points = [point for metrics in run.partners if metrics.fast_shares for point in _list_fast_steps(run, metrics)]
    tasks = run.partners[0].fast_shares[0].share.tasks if points else 0
    caption = f"fast_p: the share of {count_noun(tasks, 'task')} whose best program is right and at least p times as"
    caption += " fast as the partner; a task without such a program counts as not fast. Each step is a task's ratio."
    caption += " Bands: 95 %, Wilson's, over the tasks."
    spec = line_chart(
        points,
        title="fast_p",
        x_title="p, times as fast",
        y_title="share of the tasks",
        log_x=True,
        is_stepped=True,
        y_domain=(0, 1),
    )
    return Figure("fast_p", "fast_p", caption, spec)


def _list_fast_steps(run: OptimisedRun, metrics: PartnerMetrics) -> Iterator[dict[str, Any]]:
    """The share at every ratio that there is, and just before the first and after the last one."""
    ratios = [task.to_partner(metrics.partner) for task in run.tasks]
    lacking = metrics.fast_shares[0].share.tasks - len(ratios)
    steps = sorted({ratio for ratio in ratios if ratio is not None} or {1.0})
    for p in (min(steps[0], 1.0) / 1.1, *steps, max(steps[-1], 1.0) * 1.1):
        share = estimate_fast_share([*ratios, *[None] * lacking], p)
        if share is not None:
            yield {"series": metrics.partner, "x": p, **place_interval(share)}


def _draw_gains(run: OptimisedRun) -> Figure:
    rows = [
        {"x": task.task, "series": BEFORE, **place_interval(task.gain)} for task in run.tasks if task.gain is not None
    ]
    caption = "The start program's figure by the best program's, full grade, with 95 % intervals of the measuring; the"
    caption += " scale is logarithmic. Above 1 the best program is the better one."
    spec = interval_chart(
        rows,
        title="Gain by task",
        x_title="task",
        y_title="times as good",
        reference=1.0,
    )
    return Figure("gains", "Gain by task", caption, spec)


def _draw_limits(run: OptimisedRun) -> Figure:
    """The roofline, as shares: how near the device's limit the programs come."""
    rows = [row for task in run.tasks for row in _list_shares(task)]
    caption = (
        "Share of what the device allows (the roofline) at each program's shape set, start program beside best; the"
    )
    caption += " scale is logarithmic, and 100 is the limit."
    spec = interval_chart(
        rows,
        title="Share of the limit, in %",
        x_title="task",
        y_title="share of the limit, %",
        reference=100.0,
    )
    return Figure("limit", "Share of the limit, in %", caption, spec)


def _list_shares(task: OptimisedTask) -> Iterator[dict[str, Any]]:
    for limit in task.shares:
        name = f"{task.task} {limit.shape_set}" if len(task.shares) > 1 else task.task
        for series, figure in ((BEFORE, limit.start), (AFTER, limit.best)):
            yield {"x": name, "series": series, **place_interval(figure.scale_by(100.0))}


def _draw_within(run: OptimisedRun) -> Figure:
    points = [{"x": number, **place_interval(share)} for number, share in enumerate(run.within, 1)]
    caption = "Share of the tasks with a right program within so many attempts of the rounds that solve tasks, in their"
    caption += " order; what went back with its findings is an attempt of its own."
    caption += " Whiskers or bands: 95 %, Wilson's, over the tasks."
    spec = line_chart(
        points,
        title="Correct within n attempts",
        x_title="n, attempts of each task",
        y_title="share of the tasks",
        y_domain=(0, 1),
    )
    return Figure("within", "Correct within n attempts", caption, spec)
