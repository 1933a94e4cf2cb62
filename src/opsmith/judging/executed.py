"""Is a candidate that must be executed right? Its process computes, the task's worker compares, and this side judges.

Three processes: the candidate's has seen the program and inputs only; the worker has the author's code and the expected
values, and never the program's results but as bytes; ours runs neither's code and puts the verdict together. Whatever
the candidate's process does after it said that it is ready (an error, junk, silence, death) is the candidate's failure
at RUN. That it could not be started is ours: the candidate is unjudged.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from opsmith.judging.answers import check_diagnostic, read_verdict
from opsmith.judging.limits import OPTIONS, Limits
from opsmith.judging.verifier import larger_error, leave_unjudged
from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Task, Verdict, printable
from opsmith.running.candidate import BROKEN, ERROR, LONGEST_ERROR, OUTPUTS, READY
from opsmith.running.nursery import Nursery, Process
from opsmith.running.sandbox import Sandbox
from opsmith.targets import Target, TrialResult

_LARGEST_OUTPUTS = 1 << 26  # bytes, of one trial
_START_S = 30.0  # for importing the target


class Ask(Protocol):
    """One request about the candidate to its task's worker."""

    def __call__(self, what: str, **arguments: Any) -> dict[str, Any]: ...


@dataclass
class Execution:
    """One candidate's process, from our side."""

    nursery: Nursery
    process: Process
    limits: Limits
    end: float  # of all its trials, by time.monotonic

    def ask_outputs(self, trial: str, inputs: bytes) -> bytes | Diagnostic:
        """What it answers for a trial, or the finding against it."""
        end = min(self.end, time.monotonic() + self.limits.trial)
        try:
            self.process.channel.send(inputs, end)
            answer = self.process.channel.receive(_LARGEST_OUTPUTS, end)
        except TimeoutError:
            return self._describe_timeout(trial, end)
        except ValueError as error:
            return _refuse_run(trial, str(error), "leave the descriptors alone, return the outputs")
        except (OSError, EOFError):
            return _refuse_run(trial, f"a process that {self.nursery.kill(self.process)}", "look for what ends it")
        if answer.startswith(OUTPUTS):
            return answer.removeprefix(OUTPUTS)
        if answer.startswith(ERROR):
            return _refuse_run(trial, _read_words(answer.removeprefix(ERROR)), "")
        return _refuse_run(trial, "an answer that is neither outputs nor an error", "leave the descriptors alone")

    def close(self) -> None:
        self.nursery.kill(self.process)

    def _describe_timeout(self, trial: str, end: float) -> Diagnostic:
        """The finding against one that passed the limit of a trial, or that of them all."""
        limits = self.limits
        seconds, what, option = (limits.trial, "this trial", OPTIONS["trial"])
        if end == self.end:
            seconds, what, option = (limits.candidate, "all trials", OPTIONS["candidate"])
        remedy = f"look for a loop or a wait; {option} sets the limit"
        return _refuse_run(trial, f"no outputs within {seconds:g} s for {what}", remedy)


def judge_executed(target: Target, source: str, ask: Ask, start: Callable[[], Execution]) -> Verdict:
    """The verdict. What `ask` and `start` raise is not the candidate's doing, and is the caller's to handle."""
    begin = time.perf_counter()
    verdict = _reach_verdict(target, source, ask, start)
    return replace(verdict, judging_seconds=time.perf_counter() - begin)


def _reach_verdict(target: Target, source: str, ask: Ask, start: Callable[[], Execution]) -> Verdict:
    examined = ask("examine")
    if "verdict" in examined:
        return read_verdict(examined["verdict"], source)
    checked = _read_result(examined)
    names = [str(name) for name in examined["trials"]]
    blank = Verdict(
        Candidate(source).id,
        checked.stage,
        Outcome.REFUSED,
        Boundary.CANDIDATE,
        checked.errors,
        tuple(map(str, examined["warnings"])),
        verifier=target.verifier,
    )
    if checked.stage != Stage.RUN:
        return blank
    try:
        execution = start()
    except NotStartedError as error:
        return leave_unjudged(source, error.charged_to, error.finding, target.verifier)
    with closing(execution):
        return _run_trials(blank, source, names, ask, execution)


def start_execution(nursery: Nursery, task: Task, source: str, sandbox: Sandbox, limits: Limits) -> Execution:
    """A confined process that knows the program. Raises NotStartedError, VerifierError."""
    process = nursery.fork_candidate(sandbox)
    begin = time.monotonic()
    request = json.dumps({"target": task.target, "source": source}).encode()
    try:
        process.channel.send(request, begin + _START_S)
        answer = process.channel.receive(len(BROKEN) + 4 * LONGEST_ERROR, begin + _START_S)
    except (OSError, EOFError, ValueError):
        raise NotStartedError(task.target, nursery.kill(process)) from None
    if answer != READY:
        nursery.kill(process)
        raise NotStartedError(task.target, "", _read_words(answer.removeprefix(BROKEN)))
    return Execution(nursery, process, limits, time.monotonic() + limits.candidate)


class NotStartedError(Exception):
    """A candidate's process ended before it was confined, or the target had failed there: not the candidate's doing."""

    def __init__(self, target: str, ended: str, fault: str = "") -> None:
        super().__init__(fault or ended)
        self.charged_to = Boundary.TARGET if fault else Boundary.SANDBOX
        where, given = (f"target {target}", fault) if fault else ("the candidate's process", f"one that {ended}")
        expected, remedy = "a process that is confined and waits for inputs", "mend the target there" if fault else ""
        self.finding = Diagnostic(self.charged_to.name, where, given, expected, remedy)


def _run_trials(blank: Verdict, source: str, trials: list[str], ask: Ask, execution: Execution) -> Verdict:
    largest: float | None = None
    for number, name in enumerate(trials):
        answer = _run_trial(source, number, name, ask, execution)
        if isinstance(answer, Verdict):
            return answer
        largest = larger_error(largest, answer.max_abs_error)
        if answer.errors or answer.stage != Stage.MATCH:
            return replace(blank, stage=answer.stage, errors=answer.errors, max_abs_error=largest, trials=number + 1)
    return replace(blank, stage=Stage.MATCH, outcome=Outcome.PASSED, max_abs_error=largest, trials=len(trials))


def _run_trial(source: str, number: int, name: str, ask: Ask, execution: Execution) -> TrialResult | Verdict:
    """What a trial showed, or the verdict that the task's author or we are at fault."""
    answer = ask("inputs", trial=number)
    if "verdict" in answer:
        return read_verdict(answer["verdict"], source)
    outputs = execution.ask_outputs(name, base64.b64decode(answer["inputs"]))
    if isinstance(outputs, Diagnostic):
        return TrialResult(Stage.RUN, (outputs,))
    compared = ask("compare", trial=number, outputs=base64.b64encode(outputs).decode())
    return read_verdict(compared["verdict"], source) if "verdict" in compared else _read_result(compared)


def _read_result(data: dict[str, Any]) -> TrialResult:
    errors = tuple(Diagnostic(**error) for error in data["errors"])
    for error in errors:
        check_diagnostic(error)
    return TrialResult(Stage(data["stage"]), errors, data.get("max_abs_error"))


def _read_words(error: bytes) -> str:
    """A program's own words, in a form that no terminal obeys."""
    text = error[: 4 * LONGEST_ERROR].decode(errors="replace")[:LONGEST_ERROR]
    return printable(text, "\n")


def _refuse_run(trial: str, given: str, remedy: str) -> Diagnostic:
    return Diagnostic("RUN", trial, given, "outputs", remedy)
