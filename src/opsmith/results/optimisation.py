"""What came of a run's optimisation rounds: each step with its ratio, the best program of a task, and what it cost.

A ratio is the partner's figure by the program's: above 1 the program is the better one. A step is compared with the
program that it set out from, by a screen; along these the ratio to the start program is chained. What may be published
is the full grade of the best program alone, against the start program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from opsmith.measuring.claims import Claim, judge_bounds
from opsmith.measuring.intervals import Interval, average_ratios, chain_ratios
from opsmith.measuring.record import MeasuringGrade, SpeedRatio, SpeedReport
from opsmith.records import Candidate, Objective, Outcome, Usage
from opsmith.results.bests import ProgramGrade, choose_best, grade_programs
from opsmith.results.intervals import Estimate
from opsmith.results.lineage import Lineage, choose_measured_figures, name_start, read_lineages, read_objective
from opsmith.results.metrics import mean_of
from opsmith.results.speedups import (
    FastShare,
    GainCost,
    choose_harder_partner,
    correct_within,
    estimate_mean_ratio,
    list_fast_shares,
    measure_spread,
    price_gain,
)
from opsmith.results.states import AttemptState, name_state
from opsmith.store import Store
from opsmith.store.endings import count_endings, find_first_right
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import SampleRow, StepRow
from opsmith.store.rows import OPTIMISATION, RoundInfo, RunInfo
from opsmith.store.spending import usage_by_round

EAGER, COMPILE = "eager", "compile"  # partners
START, HARDER = "the start program", "the faster of eager and compile"
NOT_GRADED = "not graded in full"


@dataclass(frozen=True)
class ImprovingStep:
    """One sample of an optimisation round, and what came of it."""

    row: StepRow
    state: AttemptState | None  # None: no verdict
    parent: str  # Candidate.id of what it set out from
    parent_sample: str | None  # that holds it; None: it is the start program
    ratio: Interval | None  # to that program, as it was screened
    to_start: Interval | None  # to the task's start program
    reason: str  # why a right program has no ratio; "": it has one, or is not right
    is_kept: bool  # a round set out from it, or would: it is the best at the end


@dataclass(frozen=True)
class LimitShare:
    """Which part of what the device allows two programs come to, at one shape set."""

    shape_set: str
    start: Interval  # as the ratio tells it
    best: Interval


@dataclass(frozen=True)
class GradedTimes:
    """What two programs take at one shape set, in the full grade."""

    shape_set: str
    objective: Objective
    start: Interval  # as the ratio tells it
    best: Interval


@dataclass(frozen=True)
class OptimisedTask:
    """A task whose program was to become better."""

    task: str
    start: str  # Candidate.id
    best: str | None  # Candidate.id of a step's, by the rule of `bests`; None: the start program is
    steps: tuple[ImprovingStep, ...]
    gain: Interval | None  # of the best over the start program, in the full grade; None: it cannot be said
    claim: Claim | None  # what may be said of it; None: nothing, or the figure is counted and needs no claim
    to_partners: Mapping[str, Interval]  # the best's ratios to others, full grade: eager, compile ...
    shares: tuple[LimitShare, ...] = ()  # of the device's limit, where they are known
    times: tuple[GradedTimes, ...] = ()
    lack: str = ""  # why a program that leads by its screens is not the best; "": there is none, or it is

    @property
    def spread(self) -> float | None:
        """The coefficient of variation of its right attempts' ratios to the start program."""
        return measure_spread([step.to_start.value for step in self.steps if step.to_start is not None])

    @property
    def screen(self) -> Interval | None:
        """The best of its screens, where nothing is graded in full yet: it steers the run and is no result."""
        screens = [step.to_start for step in self.steps if step.to_start is not None and self.lack == NOT_GRADED]
        return max(screens, key=lambda ratio: ratio.value, default=None)

    @property
    def changes(self) -> tuple[str, ...]:
        """What was suggested on the way from the start program to the best, or to the one of the best screen."""
        steps = {step.row.candidate: step for step in reversed(self.steps) if step.state is AttemptState.CORRECT}
        screens = [
            step.row.candidate for step in self.steps if self.screen is not None and step.to_start == self.screen
        ]
        name, way = self.best or next(iter(screens), None), list[str]()
        while (step := steps.pop(name, None)) is not None:
            way.append(step.row.suggestion.what if step.row.suggestion else "no suggestion")
            name = step.parent
        return tuple(reversed(way))

    @property
    def published(self) -> float | None:
        """The gain that may be published: 1 where nothing became better or no difference was shown, None where nothing
        can be said."""
        if self.best is None:
            return None if self.lack == NOT_GRADED else 1.0
        if self.gain is None or self.claim is Claim.IN_PROCESS:
            return None
        return 1.0 if self.claim is Claim.NO_DIFFERENCE else self.gain.value

    def to_partner(self, name: str) -> float | None:
        """START and HARDER are partners too."""
        if name == START:
            return self.published
        if name == HARDER:
            return choose_harder_partner([self.to_partner(EAGER), self.to_partner(COMPILE)])
        ratio = self.to_partners.get(name)
        return None if ratio is None else ratio.value


@dataclass(frozen=True)
class PartnerMetrics:
    """Of all tasks of a run against one partner."""

    partner: str
    fast_shares: tuple[FastShare, ...]
    geometric: Estimate | None
    mean: Estimate | None


@dataclass(frozen=True)
class OptimisedRun:
    """A run that has optimisation rounds."""

    first: int  # its first such round
    objective: str
    tasks: tuple[OptimisedTask, ...]
    states: Mapping[int, Mapping[AttemptState | None, int]]  # by round, of both phases
    partners: tuple[PartnerMetrics, ...]
    within: tuple[Estimate, ...]  # share of tasks that are right within 1, 2 ... attempts of the functional rounds
    spread: float | None  # mean over tasks of `OptimisedTask.spread`
    usage: Usage  # of the optimisation rounds
    measured_seconds: float | None  # of all measuring; None: not known
    cost: GainCost | None  # of one per cent of the geometric mean; None: nothing was gained

    @property
    def gain(self) -> Estimate | None:
        """The geometric mean over tasks of what may be published."""
        return self.partners[0].geometric if self.partners else None


def read_optimisation(store: Store, run: str) -> OptimisedRun | None:
    """None for a run without optimisation rounds; `run` is a whole id."""
    first, info = store.find_optimisation(run), store.read_info(run)
    if first is None or info is None:
        return None
    speeds = store.read_speeds(run)
    tasks = _read_tasks(store, info, speeds)
    usage = Usage.total(bill for number, bill in usage_by_round(store, run).items() if number >= first)
    seconds = [speed.seconds for speed in speeds if speed.seconds is not None]
    measured = sum(seconds) if seconds else None
    partners = tuple(_measure_partners(tasks, max(0, len(store.read_tasks(run)) - len(tasks))))
    gain, firsts = partners[0].geometric, find_first_right(store, run)
    attempts = max((first for first, _ in firsts.values() if first is not None), default=0)
    return OptimisedRun(
        first=first,
        objective=read_objective(store, run),
        tasks=tasks,
        states=_count_states(store, run),
        partners=partners,
        within=correct_within({task: first for task, (first, _) in firsts.items()}, attempts),
        spread=mean_of([task.spread for task in tasks if task.spread is not None]),
        usage=usage,
        measured_seconds=measured,
        cost=price_gain(gain.value if gain else None, usage, measured),
    )


def _read_tasks(store: Store, info: RunInfo, speeds: Sequence[StoredSpeed]) -> tuple[OptimisedTask, ...]:
    """Those that any optimisation round tried, by name."""
    rounds = [of_round for of_round, _ in store.read_rounds(info.id)]
    figures = choose_measured_figures(read_objective(store, info.id), speeds)
    beam = int(info.settings.get("beam", 1))
    tried = {task for of_round in rounds if of_round.phase == OPTIMISATION for task in of_round.attempted}
    rows = store.read_steps(info.id)
    lineages = read_lineages(store, info.id, figures, beam)
    parents = {(of_round.number, task): _list_parents(of_round, task) for of_round in rounds for task in tried}
    return tuple(
        _read_task(
            lineage,
            [row for row in rows if row.task == task],
            parents,
            [speed for speed in speeds if speed.task == task and speed.report.measurement.objective.name in figures],
            figures,
        )
        for task, lineage in lineages.items()
        if task in tried
    )


def _list_parents(of_round: RoundInfo, task: str) -> list[str]:
    """The programs of a task that a round set out from."""
    return [name for owner, name in of_round.demonstrations if owner == task]


def find_parent(store: Store, run: str, row: SampleRow) -> str | None:
    """The program (Candidate.id) that a sample set out from; None: it was to solve its task."""
    of_round = next((info for info, _ in store.read_rounds(run) if info.number == row.round), None)
    names = _list_parents(of_round, row.task) if of_round is not None and of_round.phase == OPTIMISATION else []
    return names[row.number % len(names)] if names else None


def find_origin(store: Store, run: str, task: str, program: str) -> str | None:
    """The first sample that holds a right program (Candidate.id) of a task; None: the task's rounds began with it."""
    solutions = (earned.experience for earned in store.read_experiences(run))
    if any(solution.task.id == task and Candidate(solution.source).id == program for solution in solutions):
        return None
    rows = (row for row in store.read_steps(run) if row.task == task and row.candidate == program)
    return next((row.sample for row in rows if row.outcome is Outcome.PASSED), None)


def _count_states(store: Store, run: str) -> dict[int, dict[AttemptState | None, int]]:
    counts: dict[int, Counter[AttemptState | None]] = {}
    for ending in count_endings(store, run):
        counts.setdefault(ending.round, Counter())[name_state(ending.stage, ending.outcome)] += ending.samples
    return {number: dict(counter) for number, counter in counts.items()}


def _measure_partners(tasks: Sequence[OptimisedTask], lacking: int) -> Iterable[PartnerMetrics]:
    """The start program first, then those that any task was measured beside. `lacking`: tasks without a right program,
    which are not fast."""
    names = {name for task in tasks for name in task.to_partners}
    compared = [
        name for name in (EAGER, COMPILE, HARDER) if name in names or (name == HARDER and names & {EAGER, COMPILE})
    ]
    for name in (START, *compared):
        ratios = [task.to_partner(name) for task in tasks]
        shares = list_fast_shares([*ratios, *[None] * lacking])
        yield PartnerMetrics(name, shares, estimate_mean_ratio(ratios, is_geometric=True), estimate_mean_ratio(ratios))


def _read_task(
    lineage: Lineage,
    rows: Sequence[StepRow],
    parents: Mapping[tuple[int, str], Sequence[str]],
    speeds: Sequence[StoredSpeed],
    figures: Sequence[str],
) -> OptimisedTask:
    start, ratios = lineage.start.name, _Ratios(speeds, lineage.start.name)
    grades = grade_programs(speeds, start, figures)
    right = {row.candidate for row in rows if row.outcome is Outcome.PASSED}
    best = choose_best(grade for name, grade in grades.items() if name in right)
    family = _Family(lineage, ratios, grades)
    beams = {program.name for beam in lineage.beams for program in beam if program.sample is not None}
    kept = beams if best is None else {*beams, best.program}
    steps = []
    for row in rows:
        names = parents[row.round, row.task]
        steps.append(family.read_step(row, names[row.number % len(names)], kept))
    if best is None:
        lack = _explain_start(lineage, grades)
        if not lack and not grades and any(step.to_start and step.to_start.low > 1 for step in steps):
            lack = NOT_GRADED  # its round goes on, or was stopped
        return OptimisedTask(lineage.task, start, None, tuple(steps), None, None, {}, lack=lack)
    return OptimisedTask(
        task=lineage.task,
        start=start,
        best=best.program,
        steps=tuple(steps),
        gain=best.gain,
        claim=ratios.judge_gain(best.program, start),
        to_partners=ratios.find_others(best.program, start),
        shares=tuple(ratios.list_shares(best.program, start)),
        times=tuple(ratios.list_times(best.program, start)),
    )


def _explain_start(lineage: Lineage, grades: Mapping[str, ProgramGrade]) -> str:
    """Why the start program stays; "": nothing leads it."""
    leaders = lineage.list_leaders()
    if any(program.name not in grades for program in leaders):
        return NOT_GRADED
    reasons = [f"{program.name[:8]}: {grades[program.name].explain_lack()}" for program in leaders]
    return f"full grade of {'; of '.join(reasons)}" if reasons else ""


class _Family:
    """The programs of a task by descent."""

    def __init__(self, lineage: Lineage, ratios: _Ratios, grades: Mapping[str, ProgramGrade]) -> None:
        self._start = lineage.start.name
        self._ratios = ratios
        self._grades = grades
        self._samples: dict[str, str | None] = {}  # of equal programs the first
        for program in lineage.list_programs():
            self._samples.setdefault(program.name, program.sample)
        self._parents: dict[str, str] = {}  # of programs that were read

    def read_step(self, row: StepRow, parent: str, beams: Set[str]) -> ImprovingStep:
        """Steps are read in their order."""
        state, name = name_state(row.stage, row.outcome), row.candidate
        sample = self._samples.get(parent)
        if state is not AttemptState.CORRECT or name is None:
            return ImprovingStep(row, state, parent, sample, None, None, "", False)
        self._parents.setdefault(name, parent)
        ratio = self._ratios.find_ratio(name, parent, MeasuringGrade.SCREEN)
        reason = "" if ratio is not None else self._ratios.explain_lack(name)
        kept = name in beams and self._samples.get(name) == row.sample
        if name in self._grades and self._grades[name].gain is None:  # what the full grade denies is no gain
            reason = f"full grade: {self._grades[name].explain_lack()}"
            return ImprovingStep(row, state, parent, sample, ratio, None, reason, kept)
        return ImprovingStep(row, state, parent, sample, ratio, self._chain_to_start(name), reason, kept)

    def _chain_to_start(self, name: str) -> Interval | None:
        """A program's ratio to the start program: as it was measured, else along its parents."""
        chained: Interval | None = None
        while name != self._start and name in self._parents:
            parent = self._parents[name]
            direct = self._ratios.find_ratio(name, self._start) if parent != self._start else None
            ratio = direct or self._ratios.find_ratio(name, parent)
            if ratio is None:
                return None
            chained = ratio if chained is None else chain_ratios(chained, ratio)
            name = self._start if direct is not None or parent == name else parent
        return chained


class _Ratios:
    """The measured ratios of a task's programs by the objective's figures: geometric means over figures and shape sets,
    of each the last measurement."""

    def __init__(self, speeds: Sequence[StoredSpeed], start: str) -> None:
        start_name = name_start(speeds, start)
        self._by_pair: dict[tuple[str, str, MeasuringGrade], dict[tuple[str, str], SpeedReport]] = {}
        self._reasons: dict[str, str] = {}
        for speed in speeds:
            measured = speed.report.measurement
            if measured.ratio is None:
                self._reasons[measured.program] = measured.reason
            else:
                partner = start if measured.ratio.partner == start_name else measured.ratio.partner
                pair = (measured.program, partner, measured.grade)
                place = (measured.objective.name, measured.shape_set)
                self._by_pair.setdefault(pair, {})[place] = speed.report

    def find_ratio(self, program: str, partner: str, grade: MeasuringGrade | None = None) -> Interval | None:
        """`grade` None: the higher one that there is."""
        for wished in (MeasuringGrade.FULL, MeasuringGrade.SCREEN) if grade is None else (grade,):
            if ratios := [ratio.precise for ratio in self._list_ratios(program, partner, wished)]:
                return average_ratios(ratios)
        return None

    def judge_gain(self, program: str, start: str) -> Claim | None:
        """What may be said of the mean over the shape sets; None: our clock was asked at none of them."""
        ratios = [report.measurement.ratio for report in self._list_start(program, start)]
        trusted = average_ratios([ratio.trusted for ratio in ratios if ratio is not None and ratio.trusted is not None])
        gain = self.find_ratio(program, start, MeasuringGrade.FULL)
        return None if gain is None or trusted is None else judge_bounds(gain, trusted)

    def find_others(self, program: str, start: str) -> dict[str, Interval]:
        """Its ratios of the full grade by partner, but for the start program."""
        partners = [name for first, name, grade in self._by_pair if first == program and grade is MeasuringGrade.FULL]
        ratios = {name: self.find_ratio(program, name, MeasuringGrade.FULL) for name in partners if name != start}
        return {name: ratio for name, ratio in ratios.items() if ratio is not None}

    def list_shares(self, program: str, start: str) -> Iterator[LimitShare]:
        """By shape set, of the full grade."""
        for report in self._list_start(program, start):
            share, ratio = report.share, report.measurement.ratio
            if share is not None and share.share is not None and ratio is not None:
                yield LimitShare(
                    report.measurement.shape_set, share.share.scale_by(1 / ratio.precise.value), share.share
                )

    def list_times(self, program: str, start: str) -> Iterator[GradedTimes]:
        """By figure and shape set, of the full grade."""
        for report in self._list_start(program, start):
            best, ratio = report.measurement.time, report.measurement.ratio
            if best is not None and ratio is not None:
                start_time = best.scale_by(ratio.precise.value)
                yield GradedTimes(report.measurement.shape_set, report.measurement.objective, start_time, best)

    def explain_lack(self, program: str) -> str:
        """Why a program has no ratio."""
        return (
            self._reasons.get(program) or "not measured: it equals an earlier one but for names, or its round goes on"
        )

    def _list_start(self, program: str, start: str) -> list[SpeedReport]:
        """The reports of the full grade beside the start program."""
        return list(self._by_pair.get((program, start, MeasuringGrade.FULL), {}).values())

    def _list_ratios(self, program: str, partner: str, grade: MeasuringGrade) -> list[SpeedRatio]:
        reports = self._by_pair.get((program, partner, grade), {}).values()
        return [report.measurement.ratio for report in reports if report.measurement.ratio is not None]
