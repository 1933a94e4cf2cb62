"""The curves on a run's own page, as places on small pictures: tasks solved by samples judged, pass@1 by rounds.

They are drawn by a template, since a live page makes them anew twice a second. Intervals stand on the page of results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from opsmith.report.pages import format_share
from opsmith.report.tables import count_noun
from opsmith.ui.snapshot import RoundLine, RunSnapshot

WIDTH, HEIGHT = 440.0, 190.0  # of a picture
LEFT, RIGHT, TOP, BOTTOM = 44.0, 428.0, 14.0, 152.0  # of the field in it
TICKS = 5  # intervals of an axis, at most


@dataclass(frozen=True)
class CurvePoint:
    """A round on a picture."""

    x: float
    y: float
    round: int
    words: str  # what it says, in full
    is_open: bool  # the round goes on


@dataclass(frozen=True)
class CurveTick:
    place: float
    label: str


@dataclass(frozen=True)
class CurveChart:
    """One picture; `line`: the points of its line, as SVG has them."""

    title: str
    x_title: str
    y_title: str
    note: str
    points: tuple[CurvePoint, ...]
    line: str
    x_ticks: tuple[CurveTick, ...]
    y_ticks: tuple[CurveTick, ...]


def chart_run(snapshot: RunSnapshot) -> tuple[CurveChart, ...]:
    """The pictures of a run; none before a sample of it is judged."""
    rounds = [line for line in snapshot.rounds if line.is_functional]
    if not any(line.judged_count for line in rounds):
        return ()
    charts = [_chart_solved(snapshot, rounds)]
    ended = [line for line in rounds if line.solved is not None]
    return (*charts, _chart_rates(snapshot, ended)) if ended and snapshot.task_count else tuple(charts)


def _chart_solved(snapshot: RunSnapshot, rounds: Sequence[RoundLine]) -> CurveChart:
    samples = list(accumulate(line.judged_count for line in rounds))
    solved = list(accumulate(len(line.solved or ()) for line in rounds))
    if rounds[-1].solved is None:
        solved[-1] += snapshot.pending_count
    place_x, x_ticks = _scale_axis(samples[-1], LEFT, RIGHT, least_step=1.0)
    place_y, y_ticks = _scale_axis(snapshot.task_count, BOTTOM, TOP, least_step=1.0)
    tasks = count_noun(snapshot.task_count, "task")
    points = tuple(
        CurvePoint(
            place_x(x),
            place_y(y),
            line.number,
            f"round {line.number} {'goes on: ' * is_open}{y} of {tasks}, {count_noun(x, 'sample')} judged",
            is_open,
        )
        for line, x, y in zip(rounds, samples, solved, strict=True)
        for is_open in (line.solved is None,)
    )
    note = "Each point is a round."
    if rounds[-1].solved is None:
        note += " The hollow one has not ended: it counts the tasks that have a right answer so far."
    line = _join_points([(LEFT, BOTTOM), *((point.x, point.y) for point in points)])
    title, x_title = "Tasks solved by samples judged", "samples judged so far"
    return CurveChart(title, x_title, f"tasks solved of {snapshot.task_count}", note, points, line, x_ticks, y_ticks)


def _chart_rates(snapshot: RunSnapshot, rounds: Sequence[RoundLine]) -> CurveChart:
    solutions = [cell.solution for cell in snapshot.task_cells if cell.solution is not None and not cell.was_given]
    rates = [  # after each round, as the report counts it at the end
        sum(one.rate for one in solutions if one.round <= line.number) / snapshot.task_count for line in rounds
    ]
    place_x, x_ticks = _scale_axis(max(1, rounds[-1].number), LEFT, RIGHT, least_step=1.0)
    place_y, y_ticks = _scale_axis(1.0, BOTTOM, TOP)
    points = tuple(
        CurvePoint(
            place_x(line.number),
            place_y(rate),
            line.number,
            f"after round {line.number}: pass@1 {format_share(rate)} over {count_noun(snapshot.task_count, 'task')}",
            False,
        )
        for line, rate in zip(rounds, rates, strict=True)
    )
    note = (
        "Mean over all tasks: of a solved one, the share of right samples at its best temperature, in the round that "
        "solved it; else 0."
    )
    line = _join_points([(point.x, point.y) for point in points])
    return CurveChart("pass@1 by round", "round", "pass@1", note, points, line, x_ticks, y_ticks)


def _scale_axis(
    largest: float, low: float, high: float, least_step: float = 0.0
) -> tuple[Callable[[float], float], tuple[CurveTick, ...]]:
    """Where a value stands between two places, from 0 on, and the ticks of that axis."""
    step = max(choose_step(largest), least_step)
    end = max(largest, step)
    ticks = [step * number for number in range(int(end / step + 1e-9) + 1)]

    def place_value(value: float) -> float:
        return round(low + (high - low) * value / end, 1)

    return place_value, tuple(
        CurveTick(place_value(tick), f"{tick:g}" if tick < 1000 else f"{tick:,.0f}") for tick in ticks
    )


def choose_step(largest: float) -> float:
    """The distance of ticks: 1, 2 or 5 times a power of ten.

    >>> choose_step(26), choose_step(1), choose_step(960), choose_step(3)
    (10.0, 0.2, 200.0, 1.0)
    """
    power = 10.0 ** math.floor(math.log10(max(largest, 1e-9) / TICKS))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if largest / (step * power) <= TICKS + 1e-9)


def _join_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
