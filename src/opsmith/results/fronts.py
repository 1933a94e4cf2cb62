"""Fronts: of all right programs of a task those that no other one beats, and how much they beat together.

One program beats another where no figure of it is worse and one is better. Figures stand beside those of the task's
own program: 1 is equal, less is better, whatever is better of the figure itself. The hypervolume is exact: the share of
the box from 0 to `REFERENCE` (in each figure) that the front dominates. A time is relative in itself, as a geometric
mean over shape sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedMeasurement
from opsmith.records import TIME, Candidate, Objective, Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed

REFERENCE = 2.0  # times the figures of the task's own program: the corner of the box that a hypervolume is a share of

Vector = tuple[float, ...]


@dataclass(frozen=True)
class FrontPoint:
    """A right program and its figures, in the order that was asked for."""

    program: str  # Candidate.id
    run: str
    sample: str | None  # None: it was there when the run began, or is the task's own
    figures: Vector


@dataclass(frozen=True)
class TaskFront:
    """What the right programs of one task come to."""

    task: str
    objectives: tuple[Objective, ...]  # what the figures are of
    own: Vector | None  # those of the task's own program; None: not known
    programs: tuple[FrontPoint, ...]  # all that have every figure, in the order of their figures
    front: tuple[FrontPoint, ...]  # of these the ones that no other beats; of equal ones the first
    lacking: int  # right programs without one of the figures

    @property
    def names(self) -> tuple[str, ...]:
        """Of the figures."""
        return tuple(objective.name for objective in self.objectives)

    @property
    def hypervolume(self) -> float | None:
        """None: there are no figures of the task's own program."""
        return None if self.own is None else measure_hypervolume([self.scale_point(point) for point in self.front])

    def scale_point(self, point: FrontPoint) -> Vector:
        """Its figures as shares of those of the task's own program."""
        assert self.own is not None
        shares = zip(self.objectives, self.own, point.figures, strict=True)
        return tuple(objective.compare(own, figure) for objective, own, figure in shares)

    def find_best(self, name: str) -> FrontPoint | None:
        """The program of the front with the best of a figure: the least, or the most of one of which more is better."""
        place = self.names.index(name)
        return min(self.front, key=lambda point: self.objectives[place].rank(point.figures[place]), default=None)

    def is_above_own(self, name: str) -> bool:
        """Whether a program is better than the task's own by a figure."""
        place, best = self.names.index(name), self.find_best(name)
        rank = self.objectives[place].rank
        return self.own is not None and best is not None and rank(best.figures[place]) < rank(self.own[place])


def measure_own_share(count: int) -> float:
    """The hypervolume of the task's own program alone, for so many figures.

    >>> measure_own_share(2)
    0.25
    """
    return (1 - 1 / REFERENCE) ** count


def choose_front(points: Iterable[FrontPoint], objectives: Sequence[Objective]) -> tuple[FrontPoint, ...]:
    """Those that no other beats, in the order of their figures; of equal ones the first by program.

    >>> from opsmith.records import CYCLES, ON_CHIP_BYTES
    >>> vectors = {"a": (2, 1), "b": (1, 2), "c": (2, 2), "d": (1, 2)}
    >>> points = [FrontPoint(name, "run", None, vector) for name, vector in vectors.items()]
    >>> [point.program for point in choose_front(points, (CYCLES, ON_CHIP_BYTES))]
    ['b', 'a']
    """
    front: list[FrontPoint] = []
    for point in _sort_points(points, objectives):  # none beats an earlier one
        ranks = _rank_figures(point, objectives)
        if not any(_is_no_worse(_rank_figures(earlier, objectives), ranks) for earlier in front):
            front.append(point)
    return tuple(front)


def measure_hypervolume(vectors: Iterable[Vector], corner: float = REFERENCE) -> float:
    """The share of the box from 0 to `corner` that is no better than one of the vectors; exact.

    >>> measure_hypervolume([(1.0, 1.0)])
    0.25
    >>> measure_hypervolume([(0.0, 1.0), (1.0, 0.0)])
    0.75
    """
    inside = [tuple(value / corner for value in vector) for vector in vectors]
    return _measure_union([vector for vector in inside if all(value < 1.0 for value in vector)])


def read_fronts(
    store: Store,
    runs: Sequence[str],
    own: Sequence[Task],
    objectives: Sequence[Objective],
    *,
    is_published: bool = False,
) -> list[TaskFront]:
    """The fronts of the runs' tasks by what is stored, in the tasks' order; `own`: tasks with their own programs.

    is_published: of times those of the full grade alone.
    """
    speeds: dict[str, list[tuple[str, StoredSpeed]]] = {}
    for run in runs:
        for speed in store.read_speeds(run):
            measurement = speed.report.measurement
            if not is_published or measurement.objective.is_counted or measurement.grade is MeasuringGrade.FULL:
                speeds.setdefault(speed.task, []).append((run, speed))
    return [_read_front(task, speeds.get(task.id, []), tuple(objectives)) for task in own]


def _read_front(task: Task, speeds: Sequence[tuple[str, StoredSpeed]], objectives: tuple[Objective, ...]) -> TaskFront:
    places: dict[str, tuple[str, str | None]] = {}
    measured: dict[str, list[SpeedMeasurement]] = {}
    for run, speed in speeds:
        program = speed.report.measurement.program
        places.setdefault(program, (run, speed.sample))
        measured.setdefault(program, []).append(speed.report.measurement)
    own = None if task.impl is None else Candidate(task.impl).id
    vectors = {program: read_figures(rows, objectives, program == own) for program, rows in measured.items()}
    right = [program for program in vectors if program != own or places[program][1] is not None]
    points = [
        FrontPoint(program, *places[program], vector) for program in right if (vector := vectors[program]) is not None
    ]
    own_vector = (1.0,) if objectives == (TIME,) and own is not None else vectors.get(own or "")
    programs, front = _sort_points(points, objectives), choose_front(points, objectives)
    return TaskFront(task.id, objectives, own_vector, tuple(programs), front, len(right) - len(points))


def read_figures(
    rows: Sequence[SpeedMeasurement], objectives: Sequence[Objective], is_own: bool = False
) -> Vector | None:
    """The figures of one program by its measurements, the last of the higher grade; None: one is missing."""
    figures = [
        _read_figure([row for row in rows if row.objective == objective], objective, is_own) for objective in objectives
    ]
    return None if None in figures else tuple(figure for figure in figures if figure is not None)


def is_beside_own(measurement: SpeedMeasurement) -> bool:
    """Whether it says how the program stands beside the task's own: costs always do, times where they were paired."""
    ratio = measurement.ratio
    return measurement.objective.is_counted or (ratio is not None and ratio.partner == PLAIN)


def _read_figure(rows: Sequence[SpeedMeasurement], objective: Objective, is_own: bool) -> float | None:
    latest: dict[str, SpeedMeasurement] = {}
    for row in sorted(rows, key=lambda row: row.grade is MeasuringGrade.FULL):
        if row.time is not None and is_beside_own(row):
            latest[row.shape_set] = row
    if objective.is_counted:
        return next((row.time.value for row in latest.values() if row.time is not None), None)
    if is_own:
        return 1.0
    ratios = [row.ratio.precise.value for row in latest.values() if row.ratio is not None]
    return math.exp(-sum(map(math.log, ratios)) / len(ratios)) if ratios else None  # by the task's own program's


def _rank_figures(point: FrontPoint, objectives: Sequence[Objective]) -> Vector:
    return tuple(objective.rank(figure) for objective, figure in zip(objectives, point.figures, strict=True))


def _sort_points(points: Iterable[FrontPoint], objectives: Sequence[Objective]) -> list[FrontPoint]:
    """In the order of their figures, the best of the first one first."""
    return sorted(points, key=lambda point: (_rank_figures(point, objectives), point.program))


def _is_no_worse(first: Vector, second: Vector) -> bool:
    return all(left <= right for left, right in zip(first, second, strict=True))


def _measure_union(vectors: Sequence[Vector]) -> float:
    """The volume of what lies between any of the vectors and (1, 1, ...), by slices along the last figure."""
    if not vectors:
        return 0.0
    if len(vectors[0]) == 1:
        return 1.0 - min(vector[0] for vector in vectors)
    ordered = sorted(vectors, key=lambda vector: vector[-1])
    ends = [*(vector[-1] for vector in ordered[1:]), 1.0]
    slices = zip(ordered, ends, range(1, len(ordered) + 1), strict=True)
    return math.fsum(
        (end - vector[-1]) * _measure_union([lower[:-1] for lower in ordered[:count]])
        for vector, end, count in slices
        if end > vector[-1]
    )
