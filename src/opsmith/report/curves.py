"""The figures that show what a run did beside its course (`many_runs`): pass@k, tokens, cost, speeds, gains, fronts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedReport, describe_partner
from opsmith.records import CYCLES, TIME
from opsmith.report.figures import grid_chart, interval_chart, line_chart, place_interval
from opsmith.report.fronts import word_figure
from opsmith.report.rendering import Spec, annotate_figure, render_svg
from opsmith.report.tables import count_noun
from opsmith.report.views import PassAt, RunView
from opsmith.results.fronts import TaskFront
from opsmith.results.intervals import Estimate
from opsmith.results.optimisation import OptimisedRun, OptimisedTask, PartnerMetrics
from opsmith.results.speedups import estimate_fast_share

BEFORE, AFTER = "start program", "best program"


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


def annotate_figures(figures: list[Figure], runs: Sequence[RunView], size: str = "") -> list[Figure]:
    """The figures, each saying where no language model made what it shows, how much it shows, and the seeds.

    `size`: how much, where that is not what the runs hold.
    """
    samplers = dict.fromkeys(run.model for run in runs if not run.is_language_model)
    mark = f"not a language model: {', '.join(samplers)}" if samplers else ""
    lines, note = [mark, size or describe_size(runs)], f" N{mark[1:]}." if mark else ""
    return [  # the same lines in the picture too: pictures travel without their captions
        replace(own, caption=own.caption + note, spec=annotate_figure(own.spec, lines, own.title)) for own in figures
    ]


def describe_size(runs: Sequence[RunView]) -> str:
    """How much the runs hold, for below a figure's title: `n = 26 tasks, 1,664 judged samples; seed 0`."""
    tasks = max((run.overall.tasks for run in runs), default=0)
    seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
    several = f"{len(runs)} runs, " if len(runs) > 1 else ""
    samples = sum(run.judged for run in runs)
    size = f"n = {count_noun(tasks, 'task')}, {several}{count_noun(samples, 'judged sample')}"
    return f"{size}; {'seeds' if ',' in seeds else 'seed'} {seeds}"


def draw_pass_at_k(runs: Sequence[RunView]) -> Figure:
    """Both series of one run; of several runs each one's last. Equal curves are one, with the names of all."""
    several, curves = len(runs) > 1, dict[str, list[PassAt]]()
    for run in runs:
        for point in run.pass_at_k:
            if not several or point.series == run.pass_at_k[-1].series:
                curves.setdefault(run.name if several else point.series, []).append(point)
    names: dict[tuple[tuple[int, Estimate], ...], list[str]] = {}
    for name, curve in curves.items():
        names.setdefault(tuple((point.k, point.estimate) for point in curve), []).append(name)
    points = [
        {"series": " = ".join(equal), "x": k, **place_interval(estimate)}
        for curve, equal in names.items()
        for k, estimate in curve
    ]
    caption = "The chance that k samples of a task at its best temperature hold a right one, mean over the tasks; "
    caption += (
        "whiskers: 95 %, over these samples. After learning, each solved task counts by the round that solved it."
    )
    spec = line_chart(
        points,
        title="pass@k",
        x_title="k, samples of a task at its best temperature",
        y_title="pass@k",
        log_x=True,
        y_domain=(0, 1),
    )
    return Figure("pass_at_k", "pass@k", caption, spec)


def draw_rounds(run: RunView) -> Iterator[Figure]:
    """The figures of one run beside its course."""
    yield from annotate_figures([draw_pass_at_k([run])], [run])
    if run.optimised is not None:
        result, tasks = run.optimised.result, run.optimised.result.tasks
        attempts = sum(len(task.steps) for task in tasks)
        size = f"n = {count_noun(len(tasks), 'task')}, {count_noun(attempts, 'attempt')}; seed {run.seed}"
        drawings = (_draw_fast_shares, _draw_limits, _draw_within)
        yield from annotate_figures([draw(result) for draw in drawings], [run], size)
    if run.fronts is not None and (fronts := draw_fronts(run.fronts.fronts)) is not None:
        yield from annotate_figures([fronts], [run])


def draw_steps(task: OptimisedTask) -> Figure | None:
    """A task's ratios to its start program, attempt by attempt; None: none can be said."""
    points = [
        {"x": number, **place_interval(step.to_start), "mark": step.is_kept}
        for number, step in enumerate(task.steps, 1)
        if step.to_start is not None
    ]
    if len(points) < 2:
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
        x_domain=(0.5, len(task.steps) + 0.5),
    )
    return Figure("attempts", f"Attempts at {task.task}", caption, spec)


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
        x_domain=(0.5, len(run.within) + 0.5),
        y_domain=(0, 1),
    )
    return Figure("within", "Correct within n attempts", caption, spec)


OWN, FRONT, BEATEN = "the task's own program", "no other one beats it", "beaten"


def draw_fronts(fronts: Sequence[TaskFront]) -> Figure | None:
    """The first two figures of each task; None: there is one figure, or no task with its own program and another."""
    drawn = [front for front in fronts if front.own is not None and front.programs and len(front.names) > 1]
    if not drawn:
        return None
    first, second = (word_figure(name) for name in drawn[0].names[:2])
    caption = f"Right programs by {first} and {second}, as shares of those of the task's own program: less is better."
    if upward := [word_figure(shown.name) for shown in drawn[0].objectives[:2] if not shown.is_less_better]:
        caption += f" Of {' and '.join(upward)} more is better: the share is the own program's by the program's."
    if len(drawn[0].names) > 2:
        caption += f" What no other beats counts {' and '.join(word_figure(name) for name in drawn[0].names[2:])} too."
    rows = [row for front in drawn for row in _list_points(front)]
    title = "Fronts: figures as times those of the task's own program (at 1), on log scales"
    spec = grid_chart(rows, title=title, x_title=first, y_title=second)
    return Figure("fronts", "Fronts", caption, spec)


def _list_points(front: TaskFront) -> Iterator[dict[str, Any]]:
    """Equal places once; what is drawn last lies above."""
    unbeaten = {front.scale_point(point)[:2] for point in front.front}
    beaten = {front.scale_point(point)[:2] for point in front.programs} - unbeaten
    for series, places in ((BEATEN, sorted(beaten)), (OWN, [(1.0, 1.0)]), (FRONT, sorted(unbeaten))):
        yield from ({"field": front.task, "x": x, "y": y, "series": series} for x, y in places)


PROGRAM, LIMIT = "program", "limit of the device"
_UNITS = {TIME: ("µs", 1e-3), CYCLES: ("cycles", 1.0)}  # of what is a speed


def draw_speeds(task: str, reports: Sequence[SpeedReport], machine: str = "") -> Figure | None:
    """One program's times by shape set, small ones first; None: no time is known. `machine`: for its title."""
    timed = [
        report for report in reports if report.measurement.time is not None and report.measurement.objective in _UNITS
    ]
    if not timed:
        return None
    unit, factor = _UNITS[timed[0].measurement.objective]
    rows = [row for report in sorted(timed, key=_read_time) for row in _list_times(report, factor)]
    screened = any(report.measurement.grade is MeasuringGrade.SCREEN for report in timed)
    caption = f"Time of one call of {task} by shape set, in {unit}, with 95 % intervals; the scale is logarithmic."
    caption += " A partner's time is the program's times their ratio." if any(map(_has_ratio, timed)) else ""
    caption += " Screened: not for publication." if screened else ""
    spec = interval_chart(
        rows,
        title=f"Speed of {task}" + (f", {machine}" if machine else ""),
        x_title="shape set",
        y_title=f"{unit} of one call",
    )
    return Figure("speed", f"Speed of {task}", caption, spec)


def _list_times(report: SpeedReport, factor: float) -> Iterator[dict[str, Any]]:
    measurement, share = report.measurement, report.share
    assert measurement.time is not None
    yield _make_point(measurement.shape_set, PROGRAM, measurement.time, factor)
    if measurement.ratio is not None:
        partner = measurement.ratio.precise.scale_by(measurement.time.value)
        yield _make_point(measurement.shape_set, describe_partner(measurement.ratio.partner), partner, factor)
    if share is not None and share.share is not None:
        least = measurement.time.value * min(1.0, share.share.value)
        yield _make_point(measurement.shape_set, LIMIT, Interval(least, least, least), factor)


def _make_point(shape_set: str, series: str, time: Interval, factor: float) -> dict[str, Any]:
    return {"x": shape_set, "series": series, **place_interval(time.scale_by(factor))}


def _read_time(report: SpeedReport) -> float:
    return report.measurement.time.value if report.measurement.time is not None else 0.0


def _has_ratio(report: SpeedReport) -> bool:
    return report.measurement.ratio is not None
