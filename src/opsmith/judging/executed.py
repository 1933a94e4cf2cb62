"""Is a candidate that must be executed right? Its process computes, the task's worker compares, and this side judges.

Three processes: the candidate's has seen the program and inputs only; the worker has the author's code and the expected
values, and never the program's results but as bytes; ours runs neither's code, has the program built where its language
is compiled, and puts the verdict together. Whatever the candidate's process does after it said that it is ready (an
error, junk, silence, death) is the candidate's failure at RUN. That it could not be started is ours: the candidate is
unjudged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from opsmith.judging.answers import check_diagnostic, check_findings, read_verdict
from opsmith.judging.execution import Execution, NotStartedError, is_crash
from opsmith.judging.verifier import TrialTally, charge_error, leave_unjudged, veil_verdict
from opsmith.records import (
    FOR_PEOPLE,
    Boundary,
    Candidate,
    Diagnostic,
    Level,
    Outcome,
    Scrutiny,
    Stage,
    Task,
    Verdict,
    to_json,
)
from opsmith.running.arena import Buffer
from opsmith.running.nursery import Worker
from opsmith.targets import Build, Built, Target, TrialResult
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.faults import of_kind, words_of
from opsmith.targets.hidden import veil_lines
from opsmith.targets.programs import DeployedEnd
from opsmith.targets.protocols import BuildsDeployed, Deployed, Diagnosing, Locating

COMPILE = Stage("COMPILE")
_MOST_INPUTS = 64 << 20  # bytes of trials that are run once more
_MOST_HIDDEN = 12  # of them, the first ones

Answer = dict[str, Any]


@dataclass(frozen=True)
class TaskWorker:
    """A worker of the task's, asked about one program. What it raises is not the candidate's doing."""

    worker: Worker
    task: Task
    source: str
    seconds: float  # for each answer
    scrutiny: Scrutiny | None = None  # None: no verdict is asked for

    def ask_step(self, what: str, blobs: Sequence[Buffer] = (), **arguments: Any) -> Answer:
        """Its answer; blobs of the answer can be looked at until the next question."""
        self.send_step(what, blobs, **arguments)
        return self.receive_answer()

    def send_step(self, what: str, blobs: Sequence[Buffer] = (), **arguments: Any) -> None:
        """Ask without waiting for the answer, which must be received before anything else is asked."""
        sizes = self.worker.arena.write_blobs(blobs)
        known = {"blobs": sizes, "scrutiny": to_json(self.scrutiny)}
        self.worker.send_request(what, self.task, self.source, self.seconds, **known, **arguments)

    def receive_answer(self) -> Answer:
        answer = self.worker.receive_answer(self.seconds)
        return {**answer, "blobs": self.worker.arena.view_blobs(answer.get("blobs", ()))}

    def read_verdict(self, answer: Answer) -> Verdict | None:
        """The verdict that an answer is instead: the task's author, the target or we are at fault."""
        return read_verdict(answer["verdict"], self.source) if "verdict" in answer else None


Start = Callable[[Build | None], Execution]


def judge_executed(target: Target, worker: TaskWorker, start: Start) -> Verdict:
    """The verdict. What the worker and `start` raise is not the candidate's doing, and is the caller's to handle."""
    begin = time.perf_counter()
    try:
        verdict = _reach_verdict(target, worker, start)
    finally:
        worker.worker.arena.free_pages()
    return replace(verdict, judging_seconds=time.perf_counter() - begin)


def _reach_verdict(target: Target, worker: TaskWorker, start: Start) -> Verdict:
    examined = worker.ask_step("examine")
    if verdict := worker.read_verdict(examined):
        return verdict
    checked = _read_result(examined)
    warnings = tuple(map(str, examined["warnings"]))
    name, verifier = Candidate(worker.source).id, name_verifier(target)
    blank = Verdict(
        name, checked.stage, Outcome.REFUSED, Boundary.CANDIDATE, checked.errors, warnings, verifier=verifier
    )
    if checked.stage != Stage.RUN:
        return blank
    deployed = target if _is_kept(worker) and isinstance(target, Deployed) else None
    build, first = _build_beside(target, worker)
    if isinstance(build, Verdict):
        return build
    if build is not None:
        blank = replace(blank, build=build.toolchain)
        if build.errors:
            return replace(blank, stage=COMPILE, errors=build.errors)
    try:
        with closing(start(build)) as execution:
            return _Judging(target, blank, worker, execution, _Calls(deployed, build)).run_trials(first)
    except NotStartedError as error:
        return leave_unjudged(worker.source, error.charged_to, error.finding, verifier)


def _build_beside(target: Target, worker: TaskWorker) -> tuple[Build | Verdict | None, Answer]:
    """What the program is built to, while the worker makes the inputs ready, of which it gives the first; None: nothing
    is built."""
    worker.send_step("begin")
    try:
        build = _build_program(target, worker) if isinstance(target, Built) else None
    finally:
        first = worker.receive_answer()
    return build, first


def _is_kept(worker: TaskWorker) -> bool:
    """Whether the program would be, if it is right: it is also run as a user runs it."""
    return worker.scrutiny is not None and worker.scrutiny.level is Level.FULL


def _build_program(target: Built, worker: TaskWorker) -> Build | Verdict:
    deployed = target if _is_kept(worker) and isinstance(target, BuildsDeployed) else None
    try:
        build = build_checked(target, worker.task, worker.source, deployed)
    except Exception as error:
        method = "build_program" if deployed is None else "build_deployed"
        return leave_unjudged(worker.source, *charge_error(worker.task.target, error, method))
    if not build.failure:
        return build
    finding = Diagnostic("SANDBOX", "the build", build.failure, build.needed, "")
    return leave_unjudged(worker.source, Boundary.SANDBOX, finding)


def build_checked(target: Built, task: Task, source: str, deployed: BuildsDeployed | None = None) -> Build:
    """What a build gave, with what `deployed` runs. Raises what the target raises, and TypeError for anything else."""
    given = target.build_program(task, source) if deployed is None else deployed.build_deployed(task, source)
    build = of_kind(given, Build)
    check_findings(build.errors)
    return build


@dataclass(frozen=True)
class _GivenTrial:
    """What we are told of a trial."""

    name: str
    draws: int
    is_hidden: bool


@dataclass
class _Calls:
    """The trials that a program passed, to be run once more as a user runs it."""

    target: Deployed | None  # None: it is not
    build: Build | None
    trials: list[tuple[_GivenTrial, bytes]] = field(default_factory=list)  # with their inputs

    def add_trial(self, trial: _GivenTrial, inputs: Buffer) -> None:
        hidden = sum(other.is_hidden for other, _ in self.trials)
        if self.target is not None:
            total = sum(len(given) for _, given in self.trials) + len(inputs)
            self.trials.append((trial, bytes(inputs) if total <= _MOST_INPUTS and hidden < _MOST_HIDDEN else b""))


@dataclass
class _Judging:
    """The trials of one program, until one fails."""

    target: Target
    blank: Verdict
    worker: TaskWorker
    execution: Execution
    calls: _Calls
    tally: TrialTally = field(default_factory=TrialTally)

    def run_trials(self, answer: Answer) -> Verdict:
        """Those that the worker gives one after another, the first one in `answer`; the last ones are hidden."""
        while True:
            if verdict := self.worker.read_verdict(answer):
                return verdict
            self.tally.add_notes(*map(str, answer["warnings"]))
            if "trial" not in answer:
                return self._judge_calls() or self._make_verdict(Stage.MATCH, Outcome.PASSED)
            trial = _GivenTrial(**answer["trial"])
            following = self._run_trial(trial, answer["blobs"][0])
            if isinstance(following, Verdict):
                return following
            answer = following

    def _run_trial(self, trial: _GivenTrial, inputs: Buffer) -> Answer | Verdict:
        """The worker's next answer, or the refusal."""
        self.calls.add_trial(trial, inputs)
        outputs = self.execution.ask_outputs(trial.name, inputs)
        if isinstance(outputs, Diagnostic):
            finding = self._locate_failure(outputs)
            return self._refuse_trial(trial, TrialResult(Stage.RUN, (finding,)), is_crash(outputs))
        answer = self.worker.ask_step("proceed", [outputs])
        if answer.get("result") is None:  # it counts as nobody's fault, or there is a verdict instead
            return answer
        result = _read_result(answer["result"])
        if result.errors or result.stage != Stage.MATCH:
            return self._refuse_trial(trial, result, True)
        self.tally.count_result(trial.draws, result)
        return answer

    def _judge_calls(self) -> Verdict | None:
        """Of a program that is right in its process here: the refusal, where it is not in one of its own."""
        target, build, trials = self.calls.target, self.calls.build, self.calls.trials
        if target is None or build is None:
            return None
        self.execution.close()
        try:
            rows = target.run_deployed(build, [inputs for _, inputs in trials], self.worker.seconds)
        except Exception as error:
            name = self.worker.task.target
            return leave_unjudged(self.worker.source, *charge_error(name, error, "run_deployed"))
        if isinstance(rows, DeployedEnd):
            return self._refuse_trial(trials[rows.trial][0], TrialResult(Stage.RUN, (rows.finding,)), False)
        for number, ((trial, _), outputs) in enumerate(zip(trials, rows, strict=True)):
            answer = self.worker.ask_step("calls", [outputs], number=number) if outputs else {}
            if answer and (verdict := self.worker.read_verdict(answer)):
                return verdict
            result = _read_result(answer) if answer else TrialResult(Stage.MATCH)
            if result.errors:
                return self._refuse_trial(trial, result, False)
        return None

    def _locate_failure(self, finding: Diagnostic) -> Diagnostic:
        """With a line, where the target can say one. Words of a program are never more than words."""
        if not isinstance(self.target, Locating):
            return finding
        try:
            located = self.target.locate_failure(self.worker.source, finding)
            check_findings((located,))
        except Exception as error:
            self.tally.add_notes(f"{FOR_PEOPLE}the failure could not be located: {words_of(error)}")
            return finding
        return located

    def _refuse_trial(self, trial: _GivenTrial, result: TrialResult, is_explained: bool) -> Verdict:
        """`is_explained`: not what the process did to itself: an end in good order, silence, junk."""
        self.tally.count_result(trial.draws, result)
        explanation = self._explain_failure(result) if is_explained else ()
        errors = (*result.errors[:1], *explanation, *result.errors[1:])
        verdict = self._make_verdict(result.stage, Outcome.REFUSED, errors)
        if not trial.is_hidden:
            return verdict
        veiled = veil_verdict(verdict, trial.name) or verdict
        return replace(veiled, errors=veil_lines(veiled.errors))

    def _explain_failure(self, result: TrialResult) -> Sequence[Diagnostic]:
        """What the target can say of a failure beside what was seen. It never changes a verdict otherwise."""
        if not isinstance(self.target, Diagnosing) or not result.errors:
            return ()
        if result.errors[0].kind not in self.target.explained_kinds:
            return ()
        self.execution.close()  # it may still be running
        answer = self.worker.ask_step("repeat")  # outputs may lie where they were
        place = self.worker.task, self.worker.source
        try:
            findings = self.target.explain_failure(*place, answer["blobs"][0], result.errors[0])
            check_findings(findings)
        except Exception as error:
            self.tally.add_notes(f"{FOR_PEOPLE}the failure could not be explained: {words_of(error)}")
            return ()
        return findings

    def _make_verdict(self, stage: Stage, outcome: Outcome, errors: tuple[Diagnostic, ...] = ()) -> Verdict:
        return self.tally.fill_verdict(replace(self.blank, stage=stage, outcome=outcome, errors=errors))


def _read_result(data: Answer) -> TrialResult:
    errors = tuple(Diagnostic(**error) for error in data["errors"])
    for error in errors:
        check_diagnostic(error)
    notes = tuple(map(str, data.get("notes", ())))
    return TrialResult(Stage(data["stage"]), errors, data.get("max_abs_error"), notes, int(data.get("undecided", 0)))
