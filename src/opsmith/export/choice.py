"""Which of a run's right programs are taken away by an objective, from stored figures.

Of a time the rule of `results.bests` says it, beside the tasks' own programs. Where another program is faster at some
measured sizes, beyond the noise and so that it may be claimed, an operator has both.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.errors import UsageError
from opsmith.learn.afterwards import list_right_programs
from opsmith.measuring.claims import LEAST_GAIN, Claim
from opsmith.measuring.objectives import list_objectives, require_figures
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio
from opsmith.records import TIME, Candidate, Task
from opsmith.results.bests import choose_best, grade_programs
from opsmith.results.fronts import FrontPoint, TaskFront, is_beside_own, read_fronts
from opsmith.results.lineage import read_objective
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import KeptExperience


@dataclass(frozen=True)
class SizedChoice:
    """One of several programs, and the shape sets at which it was the fastest, with their sizes."""

    source: str
    sizes: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class ProgramChoice:
    """The program of a task by an objective, and the front that it was chosen from."""

    objective: str
    front: TaskFront
    point: FrontPoint
    source: str
    round: int  # of its sample; -1: it was there when the run began
    by_size: tuple[SizedChoice, ...]  # (): one program for all sizes

    def apply(self, solution: KeptExperience) -> KeptExperience:
        """The solution with this program."""
        experience = replace(solution.experience, source=self.source, round=self.round)
        return replace(solution, experience=experience, sample=self.point.sample)


def choose_programs(store: Store, run: str, own: Sequence[Task], objective: str) -> dict[str, ProgramChoice]:
    """By task id, of tasks with a right program that has the objective's figure; without those whose own program is
    better. Raises UsageError for an objective that the language does not say, or that no program has a figure of."""
    require_figures(own[0], (objective,))
    is_time = objective == TIME.name
    objectives = [TIME] if is_time else [offer for offer in list_objectives(own[0]) if offer.is_counted]
    sources = {
        (program.task.id, Candidate(program.source).id): program.source
        for program in list_right_programs(store, run, own)
    }
    choices, fronts = {}, read_fronts(store, [run], own, objectives, is_published=True)
    is_default = store.find_optimisation(run) is not None and read_objective(store, run) == objective
    if not is_default and not any(front.programs for front in fronts):
        full = f"opsmith pareto {run} --full" if is_time else f"opsmith pareto {run}"
        raise UsageError(f"export: --objective {objective}: no right program has that figure; try: {full}")
    for front in fronts:
        programs = {program: source for (task, program), source in sources.items() if task == front.task}
        speeds = store.read_speeds(run, front.task) if is_time else ()
        point = _find_fastest_point(front, speeds, own, programs) if is_time else front.find_best(objective)
        if point is not None and point.program in programs:
            by_size = _choose_by_size(speeds, point.program, programs)
            number = -1 if point.sample is None else store.find_sample(run, point.sample).row.round
            source = programs[point.program]
            choices[front.task] = ProgramChoice(objective, front, point, source, number, by_size)
    return choices


def _find_fastest_point(
    front: TaskFront, speeds: Sequence[StoredSpeed], own: Sequence[Task], programs: Container[str]
) -> FrontPoint | None:
    """The best right program; None: the task's own one is, with which the run began. A run that did not begin with it
    has no better one to give than its fastest."""
    start = Candidate(next(task.impl for task in own if task.id == front.task) or "").id
    best = choose_best(grade for grade in grade_programs(speeds, start).values() if grade.program in programs)
    if best is None:
        return None if start in programs else front.find_best(TIME.name)
    return next((point for point in front.programs if point.program == best.program), None)


def _choose_by_size(speeds: Sequence[StoredSpeed], base: str, sources: Mapping[str, str]) -> tuple[SizedChoice, ...]:
    """The programs that are fastest at some shape set each, the best overall first; (): it is at all of them."""
    measured = _read_ratios(speed.report.measurement for speed in speeds)
    sizes: dict[str, dict[str, Mapping[str, int]]] = {base: {}}
    for measurement in measured.get(base, {}).values():
        places = {program: rows.get(measurement.shape_set) for program, rows in measured.items() if program in sources}
        fastest = _find_fastest(base, {program: row.ratio for program, row in places.items() if row is not None})
        sizes.setdefault(fastest, {})[measurement.shape_set] = measurement.sizes
    if not sizes[base] or len(sizes) == 1:
        return ()
    return tuple(SizedChoice(sources[program], places) for program, places in sizes.items())


def _read_ratios(measurements: Iterable[SpeedMeasurement]) -> dict[str, dict[str, SpeedMeasurement]]:
    """By program and shape set, the last one of the full grade whose ratio to the task's own program may be said."""
    rows: dict[str, dict[str, SpeedMeasurement]] = {}
    for measurement in measurements:
        ratio, is_full = measurement.ratio, measurement.grade is MeasuringGrade.FULL
        is_time = not measurement.objective.is_counted and is_beside_own(measurement)
        if is_time and is_full and ratio is not None and ratio.claim not in (None, Claim.IN_PROCESS):
            rows.setdefault(measurement.program, {})[measurement.shape_set] = measurement
    return rows


def _find_fastest(base: str, ratios: Mapping[str, SpeedRatio | None]) -> str:
    """The program with the largest ratio of those whose interval lies above that of `base` by more than the noise."""
    known_ratios = {program: ratio.precise for program, ratio in ratios.items() if ratio is not None}
    bound = known_ratios[base].high * LEAST_GAIN
    faster = [program for program, ratio in known_ratios.items() if ratio.low > bound]
    return max(faster, key=lambda program: (known_ratios[program].value, program), default=base)
