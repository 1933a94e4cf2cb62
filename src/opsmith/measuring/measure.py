"""Measurements of one program: judged first, built as its user would build it, timed beside its partner, and said.

A program that is not right has no figure; nor has one that gave a wrong output while it was timed, nor one whose clock
is contradicted by ours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from opsmith.devices.describe import Device
from opsmith.devices.peaks import Peaks
from opsmith.errors import UsageError
from opsmith.measuring.claims import Claim, explain_refusal, judge_ratio
from opsmith.measuring.grain import describe_repeats
from opsmith.measuring.intervals import Interval
from opsmith.measuring.loop import ConfinedCase, TimingRoom
from opsmith.measuring.pairs import compare_times, estimate_median
from opsmith.measuring.record import (
    MeasuringGrade,
    RooflineShare,
    SpeedMeasurement,
    SpeedRatio,
    SpeedReport,
)
from opsmith.measuring.roofline import bound_time, measure_share
from opsmith.measuring.timing import TimedArtefacts, TimingError
from opsmith.measuring.timing_data import DataWorker, SizedData
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import TIME, Candidate, Task, Verdict, content_hash
from opsmith.running.turnstile import use_device
from opsmith.targets import Build, Target, get_target
from opsmith.targets.native.calls import DRIVER, PROGRAM
from opsmith.targets.protocols import Carried, Stating, Timed
from opsmith.timing.engine import (
    FULL,
    SCREEN,
    PairProtocol,
    PairTimes,
    Side,
    TimingFault,
    measure_apart,
    measure_pairs,
    plan_pairs,
)

PROTOCOL = "pairs/3"  # raise it whenever figures of two versions cannot be compared
PROTOCOLS: Mapping[MeasuringGrade, PairProtocol] = {MeasuringGrade.SCREEN: SCREEN, MeasuringGrade.FULL: FULL}
TRUSTED_ERROR = 0.03  # of the clock outside: processes have luck of their own, and their turns a price of their own

Verify = Callable[[Task, str], Verdict]


@dataclass(frozen=True)
class TimedProgram:
    """A program to be timed, and what it is called as a partner."""

    source: str
    name: str
    task: Task | None = None  # as which it is judged and built, of the same problem; None: as the one that is measured


@dataclass(frozen=True)
class SpeedRequest:
    """What is measured. `partner` None: the program's time alone, beside itself."""

    task: Task
    program: TimedProgram
    partner: TimedProgram | None
    shape_sets: Mapping[str, Mapping[str, int]]
    grade: MeasuringGrade
    device: Device
    peaks: Peaks | None
    seed: int = 0  # of the schedule; one that the program's author cannot know, where they are not trusted

    @property
    def problem(self) -> Problem:
        target = get_target(self.task.target)
        assert isinstance(target, Stating)
        return target.find_problem(self.task)


def choose_timed_sets(task: Task, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
    """The sizes that are timed: those that the problem says, or its largest stated ones; of these the named ones.

    Raises UsageError for a name that there is not, and for a task whose programs cannot be timed.
    """
    problem = _require_measured(task).find_problem(task)
    stated = {name: dict(sizes) for name, sizes in choose_shape_sets(problem).items()}
    timed = {name: dict(sizes) for name, sizes in problem.bench.items()} or dict([[*stated.items()][-1]])
    choices = {**stated, **timed}
    for name in names:
        if name not in choices:
            raise UsageError(f"shape set {name!r}: task {task.id} has none of that name; known: {', '.join(choices)}")
    chosen = {name: choices[name] for name in names} if names else timed
    return {name: problem.select_sizes({**problem.base_sizes, **sizes}) for name, sizes in chosen.items()}


def choose_largest_set(task: Task) -> str:
    """The name of the timed sizes that make most of a program's numbers: where screens are made."""
    timed = choose_timed_sets(task)
    return max(timed, key=lambda name: (math.prod(timed[name].values()), name))


def measure_program(room: TimingRoom, verify: Verify, request: SpeedRequest) -> Iterator[SpeedReport]:
    """One report for each shape set. Raises UsageError for a task whose programs cannot be timed, BusyError where
    somebody else has the processor for too long, VerifierError.

    The programs are judged and built before, and the processor is leased for each process of a measurement: between
    two of them other work goes on.
    """
    reason = find_obstacle(verify, request)
    builds = {} if reason else _build_sides(request)
    reason = reason or next((build.failure for build in builds.values() if build.failure), "")
    if reason:
        for name in request.shape_sets:
            yield SpeedReport(withhold_figures(request, name, reason), None)
        return
    with room.asking_worker(request.task, request.task.target) as worker:
        for name in request.shape_sets:
            yield _measure_shape(room, worker, request, builds, name)


def _require_timed(task: Task) -> tuple[Timed, Stating]:
    target: Target = get_target(task.target)
    if not isinstance(target, Timed) or not isinstance(target, Stating):
        raise UsageError(
            f"task {task.id}: programs of target {task.target} cannot be timed here; try, for its problem: --target c; "
            "in a language file: run.cycles"
        )
    return target, target


def _require_measured(task: Task) -> Stating:
    target: Target = get_target(task.target)
    if isinstance(target, Carried) and isinstance(target, Stating):
        return target
    return _require_timed(task)[1]


def find_obstacle(verify: Verify, request: SpeedRequest) -> str:
    """Why nothing is timed: a side is not right; "": both are."""
    for program in (request.program, request.partner):
        verdict = verify(program.task or request.task, program.source) if program is not None else None
        if verdict is not None and not verdict.passed:
            whose = "the program" if program is request.program else f"the partner {program.name}" if program else ""
            return f"{whose} is not right: {verdict.message or verdict.stage.name}"
    return ""


def _build_sides(request: SpeedRequest) -> dict[Side, Build]:
    timed = _require_timed(request.task)[0]
    programs = {Side.PROGRAM: request.program, Side.PARTNER: request.partner or request.program}
    return {side: timed.build_timed(each.task or request.task, each.source) for side, each in programs.items()}


def _measure_shape(
    room: TimingRoom, worker: DataWorker, request: SpeedRequest, builds: Mapping[Side, Build], name: str
) -> SpeedReport:
    flags = builds[Side.PROGRAM].toolchain
    try:
        with use_device():
            data = worker.prepare_data(request.problem, request.shape_sets[name])
            case = _prepare_case(room, worker, request, builds, data)
        measurement = _measure_case(request, case, data.call_ns, name, flags)
        with use_device():
            share = _find_share(worker, request, measurement, builds[Side.PROGRAM].threads)
            return SpeedReport(measurement, share)
    except TimingFault as error:
        return SpeedReport(withhold_figures(request, name, str(error), flags), None)


def _prepare_case(
    room: TimingRoom, worker: DataWorker, request: SpeedRequest, builds: Mapping[Side, Build], data: SizedData
) -> ConfinedCase:
    programs = {side: build.artefacts[PROGRAM] for side, build in builds.items()}
    build, processors = builds[Side.PROGRAM], request.device.usable_cores or 1
    if build.threads > processors:
        raise TimingError(f"it has {build.threads} threads, of which {processors} can run at once here")
    return ConfinedCase(
        room,
        TimedArtefacts(request.task.target, build.artefacts[DRIVER], programs, data.mixer.layout, build.threads),
        data.mixer,
        lambda recipe, outputs: worker.check_outputs(data, recipe, outputs),
        worker.list_recipes(data, PROTOCOLS[request.grade].prepared),
    )


def _measure_case(
    request: SpeedRequest, case: ConfinedCase, partner_ns: MutableMapping[bytes, float], name: str, flags: str
) -> SpeedMeasurement:
    """`partner_ns`: how long a call of partners takes, by what they are built to; this one's is kept there."""
    seed = int(content_hash("measure", request.program.source, name, str(request.seed))[:12], 16)
    purpose, protocol = f"measure {request.task.id} at {name}", PROTOCOLS[request.grade]
    if request.partner is None:
        protocol = replace(protocol, controls=0)  # both sides are the program
    artefact = case.artefacts.programs[Side.PARTNER]
    with case.room.lease_processor(purpose):
        plan = plan_pairs(case, protocol, {Side.PARTNER: partner_ns[artefact]} if artefact in partner_ns else {})
    partner_ns[artefact] = plan.call_ns[Side.PARTNER]
    ways = (measure_pairs, measure_apart) if asks_trusted(request) else (measure_pairs,)
    processes, *others = (
        list(lease_each(case.room, purpose, case.check_processes(measure(case, plan, seed), plan.protocol, seed)))
        for measure in ways
    )
    time = estimate_median([times.program for times in processes])
    measurement = replace(
        withhold_figures(request, name, "not said yet", flags),
        time=time,
        reason="",
        sought_partner="",
        pairs=sum(len(times.program) for times in processes),
        processes=len(processes),
        drawing=sum(times.filling_ns for times in (*processes, *(others[0] if others else ()))) / 1e9,
        repeats=describe_repeats(request.problem, len(case.mixer.draws)),
    )
    if request.partner is None:
        return measurement
    trusted = estimate_ratio(others[0], TRUSTED_ERROR) if others else None
    return say_ratio(measurement, request.partner.name, estimate_ratio(processes), trusted)


def lease_each(room: TimingRoom, purpose: str, processes: Iterator[PairTimes]) -> Iterator[PairTimes]:
    """What they say, each timed while the processor is leased. Raises BusyError, TimingError."""
    while True:
        with room.lease_processor(purpose):
            times = next(processes, None)
        if times is None:
            return
        yield times


def asks_trusted(request: SpeedRequest) -> bool:
    return request.grade is MeasuringGrade.FULL and request.partner is not None


def estimate_ratio(processes: Sequence[PairTimes], error: float = 0.0) -> Interval | None:
    """Partner's time by the program's, less certain by a share of itself; None: no process was asked."""
    ratios = [compare_times(times.program, times.partner) for times in processes]
    own = statistics.median(times.error for times in processes) if processes else 0.0
    return estimate_median(ratios).widen_by(error + own) if ratios else None


def say_ratio(
    measurement: SpeedMeasurement, partner: str, precise: Interval | None, trusted: Interval | None
) -> SpeedMeasurement:
    """The measurement with what may be said of its ratio; without any figure where the clocks contradict each other."""
    if precise is None:
        return measurement
    if trusted is None:
        return replace(measurement, ratio=SpeedRatio(partner, precise))
    claim = judge_ratio(precise, trusted)
    if claim is Claim.REFUSED:
        reason = explain_refusal(precise, trusted)
        return replace(measurement, time=None, ratio=None, sought_partner=partner, reason=reason)
    return replace(measurement, ratio=SpeedRatio(partner, precise, trusted, claim))


def withhold_figures(request: SpeedRequest, name: str, reason: str, flags: str = "") -> SpeedMeasurement:
    """The measurement at a shape set without any figure, for this reason."""
    target = _require_measured(request.task)
    return SpeedMeasurement(
        program=Candidate(request.program.source).id,
        problem=target.problem_digest(request.task),
        shape_set=name,
        sizes=request.shape_sets[name],
        device=request.device.digest,
        device_name=request.device.name or "",
        protocol=PROTOCOL,
        flags=flags,
        grade=request.grade,
        objective=TIME,
        time=None,
        reason=reason,
        sought_partner=request.partner.name if request.partner is not None else "",
    )


def _find_share(
    worker: DataWorker, request: SpeedRequest, measurement: SpeedMeasurement, threads: int
) -> RooflineShare | None:
    if measurement.time is None:
        return None
    work = worker.count_work(worker.prepare_data(request.problem, measurement.sizes))
    return measure_share(bound_time(request.problem, work, request.peaks, threads), work, measurement.time)
