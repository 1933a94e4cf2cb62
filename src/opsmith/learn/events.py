"""What is told to whoever watches a run. One small record per thing that happens, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith.records import Experience, KnownProgram, Usage, Verdict
from opsmith.store.rows import RoundInfo, SampleKey

if TYPE_CHECKING:
    from opsmith.results.result import RunResult
    from opsmith.store.measurements import StoredSpeed
    from opsmith.store.plans import StoredPlan


@dataclass(frozen=True)
class RunStarted:
    run: str
    model: str
    tasks: tuple[str, ...]
    solved_before: tuple[str, ...]  # tasks that were solved before the run began: from another run, or imported
    resumed: bool
    known: tuple[str, ...] = ()  # tasks with a program that the run was given in an earlier session


@dataclass(frozen=True)
class RoundStarted:
    round: RoundInfo
    judged_before: int  # of `round.planned` samples, those that were judged in an earlier session


@dataclass(frozen=True)
class SampleJudged:
    """`verdict` None: the sample was left unjudged, for the reason in `problem`."""

    key: SampleKey
    verdict: Verdict | None
    problem: str
    spent: Usage  # of the whole run, so far


@dataclass(frozen=True)
class TaskSolved:
    experience: Experience
    contaminated: bool  # the solution equals an example of its own prompt


@dataclass(frozen=True)
class ProgramsGiven:
    """Programs that the run was given are right, and shown from a round on; no model found them."""

    programs: tuple[KnownProgram, ...]
    round: int


@dataclass(frozen=True)
class KnownJudged:
    """One of the programs that the run was given has its verdict."""

    program: KnownProgram
    passed: bool
    number: int  # so many have one by now
    count: int  # of so many


@dataclass(frozen=True)
class PlanMade:
    """A task was split, or another contract was made for one of its nodes; or there is no split. It is stored."""

    plan: StoredPlan


@dataclass(frozen=True)
class NodeSolved:
    """A child of a plan has its program."""

    experience: Experience


@dataclass(frozen=True)
class MeasuringStarted:
    """A round's right programs are measured before it ends."""

    programs: int
    grade: str  # screen or full


@dataclass(frozen=True)
class ProgramMeasured:
    """It is stored by now."""

    speed: StoredSpeed


@dataclass(frozen=True)
class RoundEnded:
    round: RoundInfo
    solved: tuple[str, ...]
    unjudged: int  # samples that were left out of the count
    spent: Usage


@dataclass(frozen=True)
class Warned:
    message: str


@dataclass(frozen=True)
class ModelLeftOut:
    """One of several models is asked no more in this session; its samples stay unjudged, and the others go on."""

    model: str
    reason: str


@dataclass(frozen=True)
class Stopping:
    """The run was told to stop. It waits for what is under way, `seconds` at most."""

    requests: int  # in flight
    verdicts: int  # of replies that came
    seconds: float
    in_batches: bool  # the requests lie with the provider, where the same command finds them again


@dataclass(frozen=True)
class RunEnded:
    result: RunResult


Event = (
    RunStarted
    | RoundStarted
    | SampleJudged
    | TaskSolved
    | KnownJudged
    | ProgramsGiven
    | PlanMade
    | NodeSolved
    | MeasuringStarted
    | ProgramMeasured
    | RoundEnded
    | Warned
    | ModelLeftOut
    | Stopping
    | RunEnded
)
OnEvent = Callable[[Event], None]
