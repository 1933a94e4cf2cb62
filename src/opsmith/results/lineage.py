"""Programs that were made better, from the one that a task was solved with: a pure function of stored rows.

A program's gain is what the start program's figure is to its own, above 1 where it is better: its parent's gain times
its ratio to the parent, a geometric mean over shape sets. A ratio that the noise could have made counts as none. What a
round starts from (its beam) are the leading programs of the rounds before it; of equally good ones, the first in the
order of the samples' keys. All this steers the search; which program is the best one, `bests` says by the full grade.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.intervals import Interval, average_ratios, chain_ratios
from opsmith.measuring.objectives import FRONT, order_objectives
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedReport
from opsmith.records import TIME, Candidate, Outcome
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import StepRow
from opsmith.store.rows import OPTIMISATION, RoundInfo

SHOWN = 1.02  # a ratio whose interval lies above this is no noise of a screen
LIMIT = 0.95  # of what the device allows: nothing is left to gain

MeasuredPlace = tuple[str, str]  # figure and shape set


@dataclass(frozen=True)
class OptimisedProgram:
    """A right program of a task, and what it gained by each figure of the objective."""

    name: str  # Candidate.id
    source: str
    sample: str | None  # None: it is what the task was solved with
    gains: tuple[float, ...]
    share: float | None = None  # of what the device allows where it comes nearest to nothing, as far as that is known
    screens: Mapping[MeasuredPlace, Interval] = field(default_factory=dict)  # to the start program, along its parents

    @property
    def is_slower(self) -> bool:
        """Whether it takes more time at some shape set, whatever it gains at others."""
        return any(name == TIME.name and ratio.high < 1 / LEAST_GAIN for (name, _), ratio in self.screens.items())

    @property
    def gain(self) -> float:
        """The geometric mean over the figures."""
        return math.exp(sum(map(math.log, self.gains)) / max(1, len(self.gains)))


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
    def leader(self) -> OptimisedProgram:
        """By the screens, which nobody publishes: the first that the next round sets out from."""
        return self.beam[0]

    def list_leaders(self) -> list[OptimisedProgram]:
        """Those that the screens say to be better than the start program, and slower nowhere; the leading one first."""
        programs: dict[str, OptimisedProgram] = {}
        for program in self.list_programs():
            programs.setdefault(program.name, program)
        better = [program for program in programs.values() if program.gain > 1 and not program.is_slower]
        return list(choose_beam(better, len(better)))

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

    of_pair: Mapping[tuple[str, str, str], Mapping[str, SpeedReport]]  # by program, partner and figure; by shape set

    @classmethod
    def gather(cls, speeds: Sequence[StoredSpeed], start: str) -> Screens:
        """Those of one task; `start`: Candidate.id of its start program."""
        start_name = name_start(speeds, start)
        of_pair: dict[tuple[str, str, str], dict[str, SpeedReport]] = {}
        for speed in speeds:
            measured = speed.report.measurement
            partner = measured.ratio.partner if measured.ratio is not None else measured.sought_partner
            if measured.grade is MeasuringGrade.SCREEN and partner:
                pair = (measured.program, start if partner == start_name else partner, measured.objective.name)
                of_pair.setdefault(pair, {})[measured.shape_set] = speed.report
        return cls(of_pair)


def name_start(speeds: Iterable[StoredSpeed], start: str) -> str:
    """The partner as which a task's start program stands in its measurements: the task's own one has a name."""
    measured = [speed.report.measurement for speed in speeds]
    partners = {m.ratio.partner if m.ratio is not None else m.sought_partner for m in measured}
    is_beside_own = any(m.program == start and m.ratio is not None and m.ratio.partner == PLAIN for m in measured)
    return start if start in partners or is_beside_own else PLAIN


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
        lineage, screens = (
            begin_lineage(task, source, figures),
            Screens.gather(speeds_of.get(task, []), Candidate(source).id),
        )
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
    if store.find_optimisation(run) is None:
        return {}
    figures = choose_measured_figures(read_objective(store, run), store.read_speeds(run))
    return read_lineages(store, run, figures, int(store.summarise_run(run).info.settings.get("beam", 1)))


def read_objective(store: Store, run: str) -> str:
    """By which figure a run's programs were to become better."""
    return str(store.summarise_run(run).info.settings.get("objective", TIME.name))


def choose_measured_figures(objective: str, speeds: Iterable[StoredSpeed]) -> tuple[str, ...]:
    """Those that an objective rests on; of a front, what was measured."""
    if objective != FRONT:
        return (objective,)
    return tuple(measured.name for measured in order_objectives(speed.report.measurement for speed in speeds))


def read_step(row: StepRow, parent: OptimisedProgram, screens: Screens, figures: Sequence[str]) -> OptimisationStep:
    """What became of a sample. A program that equals its parent has gained nothing."""
    if row.outcome is not Outcome.PASSED or row.candidate is None or row.source is None:
        return OptimisationStep(row, parent, (None,) * len(figures), None)
    reports = {figure: screens.of_pair.get((row.candidate, parent.name, figure), {}) for figure in figures}
    of_figures = [[report.measurement.ratio for report in reports[figure].values()] for figure in figures]
    ratios = tuple(  # over all shape sets; None where that at one of them is not known
        average_ratios([ratio.precise for ratio in own if ratio is not None]) if None not in own else None
        for own in of_figures
    )
    changes = [count_gain(ratio) for ratio in ratios if ratio is not None]
    if len(changes) < len(figures):
        return OptimisationStep(row, parent, ratios, None)
    gains = tuple(gain * change for gain, change in zip(parent.gains, changes, strict=True))
    screened = {
        (figure, name): report.measurement.ratio.precise
        for figure in figures
        for name, report in reports[figure].items()
        if report.measurement.ratio is not None
    }
    chained = {
        place: chain_ratios(ratio, parent.screens[place]) if place in parent.screens else ratio
        for place, ratio in screened.items()
    }
    shares = [report.share.share if report.share is not None else None for report in reports[figures[0]].values()]
    share = min((share.value for share in shares if share is not None), default=None) if None not in shares else None
    return OptimisationStep(
        row, parent, ratios, OptimisedProgram(row.candidate, row.source, row.sample, gains, share, chained)
    )


def count_gain(ratio: Interval) -> float:
    """What a ratio counts for: a gain that noise could have made counts as none.

    >>> count_gain(Interval(1.3, 1.2, 1.4)), count_gain(Interval(1.3, 0.9, 1.4)), count_gain(Interval(0.8, 0.7, 0.9))
    (1.3, 1.0, 0.8)
    """
    is_exact = ratio.low == ratio.high
    return ratio.value if is_exact or ratio.low > SHOWN else min(ratio.value, 1.0)


def choose_beam(programs: Sequence[OptimisedProgram], size: int) -> tuple[OptimisedProgram, ...]:
    """The leading programs: those that are slower nowhere, then those that no other one is above by every figure, then
    by their gain."""
    free = {program.name for program in programs if not any(_dominates(other, program) for other in programs)}
    order = sorted(programs, key=lambda program: (program.is_slower, program.name not in free, -program.gain))
    return tuple(order[:size])


def _dominates(one: OptimisedProgram, other: OptimisedProgram) -> bool:
    pairs = list(zip(one.gains, other.gains, strict=True))
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)
