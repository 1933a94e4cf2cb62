"""Programs that were made better, from the one that a task was solved with: a pure function of stored rows.

A program's gain is what the start program's figure is to its own, above 1 where it is better: its parent's gain times
its ratio to the parent. A ratio that the noise could have made counts as none. What a round starts from (its beam) are
the best programs of the rounds before it; of equally good ones, the first in the order of the samples' keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opsmith.measuring.intervals import Interval
from opsmith.measuring.objectives import FRONT, TIME, choose_figures, name_figure
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedReport
from opsmith.records import Candidate, Outcome
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import StepRow
from opsmith.store.rows import OPTIMISATION, RoundInfo

SHOWN = 1.02  # a ratio whose interval lies above this is no noise of a screen
LIMIT = 0.95  # of what the device allows: nothing is left to gain


@dataclass(frozen=True)
class OptimisedProgram:
    """A right program of a task, and what it gained by each figure of the objective."""

    name: str  # Candidate.id
    source: str
    sample: str | None  # None: it is what the task was solved with
    gains: tuple[float, ...]
    share: float | None = None  # of what the device allows, where that is known

    @property
    def gain(self) -> float:
        """The geometric mean over the figures."""
        return math.exp(sum(map(math.log, self.gains)) / len(self.gains))


@dataclass(frozen=True)
class OptimisationStep:
    """A sample, the program that it set out from, and what became of it."""

    row: StepRow
    parent: OptimisedProgram
    ratios: tuple[Interval | None, ...]  # by figure: the parent's by its own; None: it is not known
    program: OptimisedProgram | None  # None: it is not right, or not measured

    @property
    def ratio(self) -> float | None:
        """To the parent: the geometric mean over the figures; None where one is not known."""
        logarithms = [math.log(ratio.value) for ratio in self.ratios if ratio is not None]
        return math.exp(sum(logarithms) / len(logarithms)) if len(logarithms) == len(self.ratios) else None


@dataclass(frozen=True)
class Lineage:
    """A task's programs, from its start on."""

    task: str  # its id
    start: OptimisedProgram
    steps: tuple[OptimisationStep, ...] = ()  # of rounds that have ended
    beams: tuple[tuple[OptimisedProgram, ...], ...] = ()  # after each of its rounds

    @property
    def beam(self) -> tuple[OptimisedProgram, ...]:
        """What the next round starts from, the best one first."""
        return self.beams[-1] if self.beams else (self.start,)

    @property
    def best(self) -> OptimisedProgram:
        return self.beam[0]

    def find_program(self, name: str) -> OptimisedProgram:
        """One of its programs, by Candidate.id."""
        return next(program for program in self.list_programs() if program.name == name)

    def list_programs(self) -> list[OptimisedProgram]:
        """The right ones whose figures are known, in the order in which they came."""
        return [self.start, *(step.program for step in self.steps if step.program is not None)]

    @property
    def idle_rounds(self) -> int:
        """The last rounds that changed nothing of what is best."""
        beams = [(self.start,), *self.beams]
        names = [[program.name for program in beam] for beam in beams]
        return len(names) - 1 - next(place for place, beam in enumerate(names) if beam == names[-1])


@dataclass(frozen=True)
class Screens:
    """The measurements of a run's candidates beside their parents."""

    of_pair: Mapping[tuple[str, str, str], SpeedReport]  # by program, partner and figure

    @classmethod
    def gather(cls, speeds: Iterable[StoredSpeed]) -> Screens:
        """Those of one task."""
        of_pair = {}
        for speed in speeds:
            measured = speed.report.measurement
            if measured.grade is MeasuringGrade.SCREEN and measured.ratio is not None:
                of_pair[measured.program, measured.ratio.partner, name_figure(measured)] = speed.report
        return cls(of_pair)

    def find_screen(self, program: str, parent: OptimisedProgram, figure: str) -> SpeedReport | None:
        """A start program that is the task's own one stands under that name."""
        names = (parent.name,) if parent.sample is not None else (parent.name, PLAIN)
        return next((self.of_pair[key] for name in names if (key := (program, name, figure)) in self.of_pair), None)


def begin_lineage(task: str, source: str, figures: Sequence[str]) -> Lineage:
    """Before any round: the program that the task was solved with."""
    return Lineage(task, OptimisedProgram(Candidate(source).id, source, None, (1.0,) * len(figures)))


def extend_lineage(
    lineage: Lineage,
    info: RoundInfo,
    rows: Sequence[StepRow],
    screens: Screens,
    figures: Sequence[str],
    beam: int,
) -> Lineage:
    """After one more round that has ended. `rows`: the task's in that round, in the order of their keys."""
    pool: dict[str, OptimisedProgram] = {}
    for program in lineage.list_programs():
        pool.setdefault(program.name, program)
    parents = [pool[name] for task, name in info.demonstrations if task == lineage.task]
    steps = []
    for row in rows:
        step = read_step(row, parents[row.number % len(parents)], screens, figures)
        steps.append(step)
        if step.program is not None:
            pool.setdefault(step.program.name, step.program)
    best = choose_beam(list(pool.values()), beam)
    return Lineage(lineage.task, lineage.start, (*lineage.steps, *steps), (*lineage.beams, best))


def trace_lineages(
    starts: Mapping[str, str],
    rounds: Sequence[RoundInfo],
    rows: Sequence[StepRow],
    speeds: Sequence[StoredSpeed],
    figures: Sequence[str],
    beam: int,
) -> dict[str, Lineage]:
    """The lineage of each task over all rounds that have ended; `starts`: its start program's source, by task."""
    rows_of: dict[tuple[int, str], list[StepRow]] = {}
    for row in rows:
        rows_of.setdefault((row.round, row.task), []).append(row)
    speeds_of: dict[str, list[StoredSpeed]] = {}
    for speed in speeds:
        speeds_of.setdefault(speed.task, []).append(speed)
    lineages = {}
    for task, source in sorted(starts.items()):
        lineage, screens = begin_lineage(task, source, figures), Screens.gather(speeds_of.get(task, ()))
        for info in rounds:
            if info.phase == OPTIMISATION and task in info.attempted:
                of_round = rows_of.get((info.number, task), [])
                lineage = extend_lineage(lineage, info, of_round, screens, figures, beam)
        lineages[task] = lineage
    return lineages


def read_lineages(store: Store, run: str, figures: Sequence[str], beam: int) -> dict[str, Lineage]:
    """The lineages of all tasks that a run has a start program of, as far as its rounds have ended."""
    starts = {solution.experience.task.id: solution.experience.source for solution in store.read_experiences(run)}
    ended = [info for info, solved in store.read_rounds(run) if solved is not None]
    return trace_lineages(starts, ended, store.read_steps(run), store.read_speeds(run), figures, beam)


def read_optimised(store: Store, run: str) -> dict[str, Lineage]:
    """The lineages of a run by its own settings; empty for one that has no optimisation rounds."""
    settings, tasks = store.summarise_run(run).info.settings, store.read_tasks(run)
    if store.find_optimisation(run) is None or not tasks:
        return {}
    objective = settings.get("objective", TIME)
    figures = choose_figures(tasks[0], FRONT) if objective == FRONT else (objective,)
    return read_lineages(store, run, figures, int(settings.get("beam", 1)))


def read_step(row: StepRow, parent: OptimisedProgram, screens: Screens, figures: Sequence[str]) -> OptimisationStep:
    """What became of a sample. A program that equals its parent has gained nothing."""
    if row.outcome is not Outcome.PASSED or row.candidate is None or row.source is None:
        return OptimisationStep(row, parent, (None,) * len(figures), None)
    reports = [screens.find_screen(row.candidate, parent, figure) for figure in figures]
    ratios = tuple(_read_ratio(report) for report in reports)
    changes = [count_gain(ratio) for ratio in ratios if ratio is not None]
    if len(changes) < len(figures):
        return OptimisationStep(row, parent, ratios, None)
    gains = tuple(gain * change for gain, change in zip(parent.gains, changes, strict=True))
    program = OptimisedProgram(row.candidate, row.source, row.sample, gains, _read_share(reports[0]))
    return OptimisationStep(row, parent, ratios, program)


def count_gain(ratio: Interval) -> float:
    """What a ratio counts for: a gain that noise could have made counts as none.

    >>> count_gain(Interval(1.3, 1.2, 1.4)), count_gain(Interval(1.3, 0.9, 1.4)), count_gain(Interval(0.8, 0.7, 0.9))
    (1.3, 1.0, 0.8)
    """
    is_exact = ratio.low == ratio.high
    return ratio.value if is_exact or ratio.low > SHOWN else min(ratio.value, 1.0)


def choose_beam(programs: Sequence[OptimisedProgram], size: int) -> tuple[OptimisedProgram, ...]:
    """The best programs: those first that no other one is above by every figure, then by their gain."""
    free = {program.name for program in programs if not any(_dominates(other, program) for other in programs)}
    order = sorted(programs, key=lambda program: (program.name not in free, -program.gain))
    return tuple(order[:size])


def _dominates(one: OptimisedProgram, other: OptimisedProgram) -> bool:
    pairs = list(zip(one.gains, other.gains, strict=True))
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)


def _read_ratio(report: SpeedReport | None) -> Interval | None:
    return None if report is None or report.measurement.ratio is None else report.measurement.ratio.precise


def _read_share(report: SpeedReport | None) -> float | None:
    share = report.share.share if report is not None and report.share is not None else None
    return None if share is None else share.value
