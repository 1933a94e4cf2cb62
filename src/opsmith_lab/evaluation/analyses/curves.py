"""How a run learns, round by round, against the input tokens it needs (figures 7 and 11).

A point is a round: the share of tasks solved by its end, against the least necessary input tokens averaged over tasks.
Those are the tokens of one prompt of a task in the round that solved it, or in its last one so far: a solved task needs
no longer prompt, so that a curve may turn back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, SHARE, TEXT, DataTable
from opsmith.report.rendering import COLUMNS
from opsmith.results.metrics import mean_of
from opsmith.results.result import RoundResult
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row, say_estimate
from opsmith_lab.evaluation.measure import MeanEstimate, share_marks
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Point:
    """One round of one run."""

    label: str  # 9: HME₅
    level: str
    tokens: float | None  # input, of one prompt, mean over the tasks
    solved: int
    estimate: MeanEstimate | None
    pareto: bool = False  # it solved something, and no other round of the run solves as much with fewer tokens


def analyse_curves(study: Study) -> Analysis:
    """Every round of every run, the Pareto points marked."""
    curves = [(run, make_points(run, study.tasks_by_group[ALL])) for run in study.observed]
    rows = [
        Row(run.series, run.arm.name, "pass@n", f"seed {run.seed}, {point.label}", point.estimate)
        for run, points in curves
        for point in points
    ]
    figures = {
        f"-{number}" if number > 1 else "": _draw_figure(study, [pair for pair in curves if pair[0].series == series])
        for number, series in enumerate(study.series_names, 1)
    }
    best = [point for _, points in curves for point in points if point.pareto and point.level != "none"]
    hard = sum(point.level == "H" for point in best)  # the paper says that these are enough for most Pareto points
    notes = (
        "filled points are the Pareto points, of rounds that solved a task; lines join a run's rounds in their order",
        f"Pareto points of rounds that show hard demonstrations only: {hard} of {len(best)} with demonstrations",
    )
    return Analysis(_write_headline(study, curves), rows, list(starmap(_tabulate_points, curves)), figures, notes)


def make_points(run: ObservedRun, tasks: Sequence[str]) -> tuple[Point, ...]:
    """The rounds of a run that have ended, in order."""
    points = [_make_point(run, tasks, round_result) for round_result in run.result.rounds]
    before = [0, *(point.solved for point in points)]
    gaining = zip(points, before, strict=False)  # a round that solved nothing has reached nothing with its prompts
    best = find_pareto([(point.tokens if point.solved > solved else None, point.solved) for point, solved in gaining])
    return tuple(replace(point, pareto=i in best) for i, point in enumerate(points))


def find_pareto(places: Sequence[tuple[float | None, int]]) -> set[int]:
    """The positions that no other beats: as many solved with fewer tokens, or more with as few; of equals the first.

    >>> sorted(find_pareto([(10, 1), (20, 1), (15, 3), (30, 4), (30, 4)]))
    [0, 2, 3]
    """
    positions: set[int] = set()
    most_solved = -1
    by_tokens = [(tokens, -solved, position) for position, (tokens, solved) in enumerate(places) if tokens is not None]
    for _, less, position in sorted(by_tokens):
        if -less > most_solved:
            positions.add(position)
            most_solved = -less
    return positions


def format_label(number: int, level: str, cycle: int) -> str:
    """
    >>> format_label(9, "HME", 5), format_label(0, "none", 0)
    ('9: HME₅', 'None')
    """
    return "None" if level == "none" and not cycle else f"{number}: {level}{str(cycle).translate(SUBSCRIPTS)}"


def _make_point(run: ObservedRun, tasks: Sequence[str], ended: RoundResult) -> Point:
    """Tokens are of one prompt of each task in its last round up to this one; a solved task is asked no more."""
    rounds = [own for number, own in sorted(run.tokens.items()) if number <= ended.round]
    tokens: dict[str, int] = {task: count for own in rounds for task, count in own.items() if task in tasks}
    solved = share_marks([run.mark_solved(tasks, ended.round)], run.judged)
    label = format_label(ended.round, ended.level, ended.cycle)
    return Point(label, ended.level, mean_of(list(map(float, tokens.values()))), ended.cumulative, solved)


def _tabulate_points(run: ObservedRun, points: Sequence[Point]) -> DataTable:
    lines = [
        (own.label, own.tokens, own.solved, say_estimate(own.estimate), "Pareto" if own.pareto else "")
        for own in points
    ]
    columns = {"round": TEXT, "input tokens, mean over tasks": "tokens", "tasks solved": COUNT, "pass@n": SHARE}
    return DataTable(f"{shorten_model(run.series)}, {run.arm.name}, seed {run.seed}", {**columns, "": TEXT}, lines)


def _draw_figure(study: Study, curves: Sequence[tuple[ObservedRun, Sequence[Point]]]) -> Chart:
    size = len(study.tasks)
    drawn = [
        {
            "x": point.tokens,
            "y": size * point.estimate.value if point.estimate else None,
            "label": point.label if run is curves[0][0] else "",  # the labels of several runs would cover each other
            "mark": point.pareto,
            "series": f"{run.arm.name}, seed {run.seed}",
        }
        for run, points in curves
        for point in points
    ]
    axes = {"x_title": "input tokens of one prompt, mean over tasks", "y_title": f"tasks solved of {size}"}
    title = f"{_write_headline(study, curves)} (filled: Pareto points)"
    return Chart("lines", drawn, {"title": title, **axes, "width": COLUMNS, "empty": "no round has ended"})


def _write_headline(study: Study, curves: Sequence[tuple[ObservedRun, Sequence[Point]]]) -> str:
    """Tasks solved by the end of the first round and of the last one, mean over the seeds of each model."""
    phrases = []
    for series in study.series_names:
        own = [points for run, points in curves if run.series == series and points]
        if own:
            first, last = (sum(points[place].solved for points in own) / len(own) for place in (0, -1))
            prefix = "" if len(study.series_names) == 1 else f"{shorten_model(series)}: "
            phrases.append(f"{prefix}{first:.3g} after the first round, {last:.3g} after the last")
    return f"tasks solved of {len(study.tasks)}: {'; '.join(phrases)}" if phrases else "no round has ended"
