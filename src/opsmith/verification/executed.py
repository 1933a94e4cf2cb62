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

from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Task, Verdict, printable
from opsmith.targets import Target, TrialResult
from opsmith.verification.answers import check_diagnostic, read_verdict
from opsmith.verification.candidate import ERROR, LONGEST_ERROR, OUTPUTS, READY
from opsmith.verification.nursery import Nursery, Process
from opsmith.verification.sandbox import Sandbox
from opsmith.verification.verifier import larger, unjudged

_LARGEST_OUTPUTS = 1 << 26  # bytes, of one trial
_START_S = 30.0  # for importing the target


class Ask(Protocol):
    """One request about the candidate to its task's worker."""

    def __call__(self, what: str, **more: Any) -> dict[str, Any]: ...


@dataclass
class Execution:
    """One candidate's process, from our side."""

    nursery: Nursery
    process: Process
    end: float  # of all its trials, by time.monotonic
    allowed: float  # seconds that this was at its start

    def outputs(self, trial: str, inputs: bytes) -> bytes | Diagnostic:
        """What it answers for a trial, or the finding against it."""
        try:
            self.process.channel.send(inputs, self.end)
            answer = self.process.channel.receive(_LARGEST_OUTPUTS, self.end)
        except TimeoutError:
            return _finding(trial, f"no outputs within {self.allowed:g} s for all trials", "look for a loop or a wait")
        except ValueError as error:
            return _finding(trial, str(error), "leave the descriptors alone, return the outputs")
        except (OSError, EOFError):
            return _finding(trial, f"a process that {self.nursery.kill(self.process)}", "look for what ends it")
        if answer.startswith(OUTPUTS):
            return answer.removeprefix(OUTPUTS)
        if answer.startswith(ERROR):
            return _finding(trial, _shown(answer.removeprefix(ERROR)), "")
        return _finding(trial, "an answer that is neither outputs nor an error", "leave the descriptors alone")

    def close(self) -> None:
        self.nursery.kill(self.process)


def judge(target: Target, source: str, ask: Ask, start: Callable[[], Execution]) -> Verdict:
    """The verdict. What `ask` and `start` raise is not the candidate's doing, and is the caller's to handle."""
    begin = time.perf_counter()
    verdict = _judged(target, source, ask, start)
    return replace(verdict, seconds=time.perf_counter() - begin)


def _judged(target: Target, source: str, ask: Ask, start: Callable[[], Execution]) -> Verdict:
    examined = ask("examine")
    if "verdict" in examined:
        return read_verdict(examined["verdict"], source)
    found = _result(examined)
    names = [str(name) for name in examined["trials"]]
    blank = Verdict(
        Candidate(source).id,
        found.stage,
        Outcome.REFUSED,
        Boundary.CANDIDATE,
        found.errors,
        tuple(map(str, examined["warnings"])),
        verifier=target.verifier,
    )
    if found.stage is not Stage.RUN:
        return blank
    try:
        execution = start()
    except NotStartedError as error:
        return unjudged(source, Boundary.SANDBOX, error.finding, target.verifier)
    with closing(execution):
        return _tried(blank, source, names, ask, execution)


def started(nursery: Nursery, task: Task, source: str, sandbox: Sandbox, deadline: float) -> Execution:
    """A confined process that knows the program. Raises NotStartedError, VerifierError."""
    process = nursery.candidate(sandbox)
    begin = time.monotonic()
    told = json.dumps({"target": task.target, "source": source}).encode()
    try:
        process.channel.send(told, begin + _START_S)
        process.channel.receive(len(READY), begin + _START_S)
    except (OSError, EOFError, ValueError):
        raise NotStartedError(nursery.kill(process)) from None
    return Execution(nursery, process, time.monotonic() + deadline, deadline)


class NotStartedError(Exception):
    """A candidate's process ended before it was confined: ours, whatever the reason."""

    def __init__(self, ended: str) -> None:
        super().__init__(ended)
        expected = "a process that is confined and waits for inputs"
        self.finding = Diagnostic("SANDBOX", "the candidate's process", f"one that {ended}", expected)


def _tried(blank: Verdict, source: str, trials: list[str], ask: Ask, execution: Execution) -> Verdict:
    largest: float | None = None
    for number, name in enumerate(trials):
        answer = _trial(source, number, name, ask, execution)
        if isinstance(answer, Verdict):
            return answer
        largest = larger(largest, answer.max_abs_error)
        if answer.errors or answer.stage is not Stage.MATCH:
            return replace(blank, stage=answer.stage, errors=answer.errors, max_abs_error=largest, trials=number + 1)
    return replace(blank, stage=Stage.MATCH, outcome=Outcome.PASSED, max_abs_error=largest, trials=len(trials))


def _trial(source: str, number: int, name: str, ask: Ask, execution: Execution) -> TrialResult | Verdict:
    """What a trial showed, or the verdict that the task's author or we are at fault."""
    given = ask("inputs", trial=number)
    if "verdict" in given:
        return read_verdict(given["verdict"], source)
    outputs = execution.outputs(name, base64.b64decode(given["inputs"]))
    if isinstance(outputs, Diagnostic):
        return TrialResult(Stage.RUN, (outputs,))
    compared = ask("compare", trial=number, outputs=base64.b64encode(outputs).decode())
    return read_verdict(compared["verdict"], source) if "verdict" in compared else _result(compared)


def _result(data: dict[str, Any]) -> TrialResult:
    errors = tuple(Diagnostic(**error) for error in data["errors"])
    for error in errors:
        check_diagnostic(error)
    return TrialResult(Stage[data["stage"]], errors, data.get("max_abs_error"))


def _shown(error: bytes) -> str:
    """A program's own words, in a form that no terminal obeys."""
    text = error[: 4 * LONGEST_ERROR].decode(errors="replace")[:LONGEST_ERROR]
    return printable(text, "\n")


def _finding(trial: str, given: str, remedy: str) -> Diagnostic:
    return Diagnostic("RUN", trial, given, "outputs", remedy)
