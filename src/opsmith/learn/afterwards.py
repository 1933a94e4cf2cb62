"""What a run solved, or all that it found right, measured when it is over.

The same figures in the same place as those of `--measure`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.learn.speeds import RightProgram, read_keys
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import Candidate, Outcome, Task
from opsmith.results.bests import grade_programs, list_best
from opsmith.results.fronts import is_beside_own
from opsmith.results.lineage import read_objective, read_optimised
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows
from opsmith.store.verdicts import list_judgements, read_programs
from opsmith.targets import get_target
from opsmith.targets.capabilities import canonical_form

FillOrder = Callable[[SpeedOrder], Iterator[SpeedReport]]


@dataclass(frozen=True)
class ComparedProgram:
    """A right program of a run, whatever became of it."""

    task: Task
    source: str
    sample: str | None  # None: it was there when the run began, or is the task's own


def list_solved_programs(store: Store, run: str, own: Sequence[Task]) -> list[RightProgram]:
    """The best programs that the run found itself, in the order of its solutions; where rounds made one better, beside
    the program that they began with. A leading program that nobody has graded so far stands for the best.

    `own`: tasks with the programs of their files, which a store does not have; a solution of another task is measured
    alone.
    """
    task_by_digest = {task.digest: task for task in own}
    lineages, programs = read_optimised(store, run), []
    for best in list_best(store, run):
        task = task_by_digest.get(best.experience.task.digest, best.experience.task)
        source, sample, lineage = best.experience.source, best.sample, lineages.get(task.id)
        if lineage is not None and source == lineage.start.source:
            grades = grade_programs(store.read_speeds(run, task.id), lineage.start.name, (read_objective(store, run),))
            ungraded = (leader for leader in lineage.list_leaders() if leader.name not in grades)
            source, sample = next(((leader.source, leader.sample) for leader in ungraded), (source, sample))
        start = lineage.start.source if lineage is not None and source != lineage.start.source else None
        if sample is not None:
            programs.append(RightProgram(task, source, sample, partner=start))
    return programs


def measure_solved(
    store: Store, run: str, programs: Sequence[RightProgram], grade: MeasuringGrade, fill: FillOrder, is_again: bool
) -> Iterator[StoredSpeed]:
    """Measure what has no time yet, or all of it again, and store it; each is stored when it is given.

    What was stored without a time is tried once more. Raises StoreError.
    """
    measured = frozenset() if is_again else frozenset(read_keys(store, run, only_timed=True))
    for program in programs:
        order = SpeedOrder(program.task, program.source, grade, measured, program.partner)
        yield from _store_reports(store, run, program.sample, order, fill)


def list_right_programs(store: Store, run: str, own: Sequence[Task]) -> list[ComparedProgram]:
    """Every right program of a run, its intermediate ones and those it began with included; a text once for a task.

    `own`: as of `list_solved_programs`.
    """
    task_by_digest = {task.digest: task for task in own}
    tasks = {task.id: task_by_digest.get(task.digest, task) for task in store.read_tasks(run)}
    right = [judgement for judgement in list_judgements(store, run, "") if judgement.before[1] is Outcome.PASSED]
    texts = read_programs(store, run, {judgement.candidate for judgement in right})
    imported = [stored.experience for stored in store.read_experiences(run) if stored.sample is None]
    programs = [
        ComparedProgram(tasks[start.task.id], start.source, None) for start in imported if start.task.id in tasks
    ]
    programs += [
        ComparedProgram(tasks[row.task], texts[row.candidate], row.sample) for row in right if row.task in tasks
    ]
    unique = {(program.task.id, program.source): program for program in reversed(programs)}
    return [program for program in programs if unique[program.task.id, program.source] is program]


def measure_figures(
    store: Store,
    run: str,
    programs: Sequence[ComparedProgram],
    grade: MeasuringGrade,
    fill: FillOrder,
    names: Sequence[str],
) -> Iterator[StoredSpeed]:
    """Of right programs these figures, as far as the run has none: of isomorphs once, and of the tasks' own programs.

    Each is stored when it is given. Raises StoreError.
    """
    measured = frozenset(read_keys(store, run, only_timed=True))
    figures = _read_measured_figures(store, run, grade)
    tasks = {program.task.id: program.task for program in programs}
    # the tasks' own programs, which the others stand beside
    own = [ComparedProgram(task, task.impl, None) for task in tasks.values() if task.impl is not None]
    for program in [*own, *_choose_of_isomorphs(programs, figures)]:
        known_names = figures.get((program.task.id, Candidate(program.source).id), set())
        missing = tuple(name for name in names if name not in known_names)
        if missing:
            order = SpeedOrder(program.task, program.source, grade, measured, figures=missing)
            yield from _store_reports(store, run, program.sample, order, fill)


def _read_measured_figures(store: Store, run: str, grade: MeasuringGrade) -> dict[tuple[str, str], set[str]]:
    """By task and program, which figures of it are stored: times of that grade or full, beside the task's own."""
    figures: dict[tuple[str, str], set[str]] = {}
    for speed in store.read_speeds(run):
        measurement = speed.report.measurement
        is_enough = measurement.objective.is_counted or measurement.grade in (grade, MeasuringGrade.FULL)
        if measurement.time is not None and is_enough and is_beside_own(measurement):
            figures.setdefault((speed.task, measurement.program), set()).add(measurement.objective.name)
    return figures


def _choose_of_isomorphs(
    programs: Sequence[ComparedProgram], figures: Mapping[tuple[str, str], set[str]]
) -> list[ComparedProgram]:
    """The first of each group of isomorphic programs, or the first of which there are figures."""
    groups: dict[tuple[str, str], ComparedProgram] = {}
    measured = [program for program in programs if (program.task.id, Candidate(program.source).id) in figures]
    for program in (*measured, *programs):
        form = canonical_form(get_target(program.task.target), program.source)
        groups.setdefault((program.task.id, form), program)
    return [*groups.values()]


def _store_reports(
    store: Store, run: str, sample: str | None, order: SpeedOrder, fill: FillOrder
) -> Iterator[StoredSpeed]:
    start = time.monotonic()
    for report in fill(order):
        speed = StoredSpeed(order.task.id, sample, report, time.monotonic() - start)
        store.put(speed_rows(run, speed)).result()
        yield speed
        start = time.monotonic()
