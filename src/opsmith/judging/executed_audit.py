"""Is a task file right whose candidates are executed? What can be told from outside of the language.

The file's own program computes in confined processes, as any candidate does, and the task's worker compares. Can every
trial be made? Does the own program pass? Does another process refuse its outputs, since data are not the same twice? Is
every answer refused that a lazy program could give, and does every input matter? The last two need bytes in an encoding
that can be read (`encodings`). A target that knows better adds an `audit` of its own (`Audited`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any

from opsmith.judging.answers import MOVED_ANSWER
from opsmith.judging.executed import TaskWorker
from opsmith.judging.execution import Execution, NotStartedError
from opsmith.records import Boundary, Diagnostic, Stage, Task, Verdict
from opsmith.running.arena import Buffer
from opsmith.targets.audit import Finding, Judge, State, audit_program
from opsmith.targets.capabilities import FRAME, WRITE_FRAME, is_frame, name_program_place

_OPAQUE = "in bytes that are no JSON, .npy or .npz: opsmith cannot read them"
_OWN_AUDIT = "one of these encodings, or an `audit` of the target's own"


@dataclass(frozen=True)
class Processes:
    """What an audit may start and ask."""

    judge: Judge
    worker: Callable[[bool], AbstractContextManager[TaskWorker]]  # the task's; True: a fresh one
    start: Callable[[], Execution]  # of the file's own program


def audit_executed(task: Task, source: str, processes: Processes) -> Iterator[Finding]:
    """All findings on `task`, whose own program is `source` ("": it has none)."""
    try:
        with processes.worker(False) as worker:
            yield from _until_stopped(_audit_program(_AuditWorker(worker), task, source, processes))
    except NotStartedError as error:
        yield Finding("program", State.UNCHECKED, "starting it", str(error.finding))


def _audit_program(worker: _AuditWorker, task: Task, source: str, processes: Processes) -> Iterator[Finding]:
    names = worker.ask_names()
    inputs = [worker.ask_inputs(index) for index in range(len(names))]
    yield Finding("data", State.FINE, f"{len(names)} trials")
    place = name_program_place(task)
    if source and is_frame(task, source):
        program, verdict = Finding("program", State.UNCHECKED, f"the file's own {place}", FRAME, WRITE_FRAME), None
    else:
        program, verdict = audit_program(task, source or None, processes.judge, place)
    yield program
    if verdict is None or not verdict.passed:
        reason = "answers, reference, tolerance and inputs: all need an `impl` that passes"
        yield Finding("answers", State.UNCHECKED, "nothing", reason, "an `impl` that passes")
        return
    outputs = _collect_outputs(processes, names, inputs)
    if isinstance(outputs, Finding):
        yield outputs
        return
    for findings in (
        _check_repeated(processes, source, names, outputs),
        _check_answers(worker, outputs),
        _check_inputs(worker, processes, names),
    ):
        yield from _until_stopped(findings)


def _until_stopped(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Findings, and why there are no more of them."""
    try:
        yield from findings
    except _StoppedError as stopped:
        yield stopped.finding


class _StoppedError(Exception):
    """The worker has no answer: the task's author or the target is at fault."""

    def __init__(self, check: str, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        faulty = verdict.charged_to is Boundary.TASK
        remedy = "correct the task file" if faulty else ""
        self.finding = Finding(
            check, State.FAULTY if faulty else State.UNCHECKED, "its trials", verdict.message, remedy
        )


@dataclass(frozen=True)
class _AuditWorker:
    """The task's worker, asked for one trial at a time. Raises _StoppedError."""

    worker: TaskWorker

    def ask_names(self) -> list[str]:
        return [str(name) for name in self._ask_worker("data", "trials")["trials"]]

    def ask_inputs(self, trial: int) -> bytes:
        return bytes(self._ask_worker("data", "inputs", trial=trial)["blobs"][0])

    def accepts_outputs(self, check: str, trial: int, outputs: Buffer) -> bool:
        answer = self._ask_worker(check, "compare", [outputs], trial=trial)
        return answer["stage"] == Stage.MATCH.name and not answer["errors"]

    def try_lazy_answers(self, trial: int, right: bytes, first: bytes, neighbour: bytes) -> dict[str, bool | None]:
        """By what was answered: whether it passes. None: there is nothing to move."""
        return dict(self._ask_worker("answers", "mislead", [right, first, neighbour], trial=trial)["passes"])

    def mix_inputs(self, trial: int) -> dict[str, bytes | None]:
        """For each input the trial's inputs with that one drawn anew; None: no other trial has one that could be."""
        answer = self._ask_worker("inputs", "mix", trial=trial)
        blobs = iter([bytes(blob) for blob in answer["blobs"]])
        return {name: next(blobs) if has_mixture else None for name, has_mixture in answer["mixed"].items()}

    def _ask_worker(self, check: str, what: str, blobs: Sequence[Buffer] = (), **arguments: object) -> dict[str, Any]:
        answer = self.worker.ask_step(what, blobs, **arguments)
        if verdict := self.worker.read_verdict(answer):
            raise _StoppedError(check, verdict)
        return answer


def _collect_outputs(processes: Processes, names: list[str], inputs: list[bytes]) -> list[bytes] | Finding:
    """The own program's, at every trial."""
    with closing(processes.start()) as execution:
        answers = [_copy_answer(execution.ask_outputs(*pair)) for pair in zip(names, inputs, strict=True)]
    failed = next((each for each in answers if isinstance(each, Diagnostic)), None)
    if failed is not None:
        return Finding("program", State.FAULTY, "a second time", str(failed), "a program that does the same twice")
    return [each for each in answers if isinstance(each, bytes)]


def _copy_answer(answer: Buffer | Diagnostic) -> bytes | Diagnostic:
    return answer if isinstance(answer, Diagnostic) else bytes(answer)


def _check_repeated(processes: Processes, source: str, names: list[str], outputs: list[bytes]) -> Iterator[Finding]:
    """Another process has drawn its data and asked its reference anew: it must want the same outputs."""
    with processes.worker(True) as worker:
        fresh = _AuditWorker(worker)
        refused = [
            name for index, name in enumerate(names) if not fresh.accepts_outputs("reference", index, outputs[index])
        ]
    if not refused:
        yield Finding("reference", State.FINE, "same")
        return
    fault = f"right outputs are refused in another process ({refused[0]}): inputs or reference are drawn without a seed"
    yield Finding("reference", State.FAULTY, "two processes", fault, "draw from a seed that the task and trial give")


def _check_answers(worker: _AuditWorker, outputs: list[bytes]) -> Iterator[Finding]:
    """A finding per lazy answer that passes everywhere, or that all were refused; then the same of the tolerance."""
    rotated = [*outputs[1:], outputs[0]]
    misled = [worker.try_lazy_answers(index, right, outputs[0], rotated[index]) for index, right in enumerate(outputs)]
    moved = [row.pop(MOVED_ANSWER, None) for row in misled]
    tried = [name for name in misled[0] if len(outputs) > 1 or "another trial" not in name]
    survivors = [name for name in tried if all(row.get(name) for row in misled)]
    for name in survivors:
        fault = f"passes all {len(outputs)} trials"
        yield Finding("answers", State.FAULTY, name, fault, "data for which this is not right, or a closer comparison")
    if not survivors:
        yield Finding("answers", State.FINE, f"{len(tried)} refused")
    yield _check_tolerance(moved)


def _check_tolerance(moved: list[bool | None]) -> Finding:
    tried = "every number moved by a tenth of the largest"
    passes = [passed for passed in moved if passed is not None]
    if not passes:
        return Finding("tolerance", State.UNCHECKED, "nothing", f"the outputs are {_OPAQUE}", _OWN_AUDIT)
    if all(passes):
        return Finding("tolerance", State.FAULTY, tried, f"passes all {len(passes)} trials", "a closer comparison")
    return Finding("tolerance", State.FINE, "close")


def _check_inputs(worker: _AuditWorker, processes: Processes, names: list[str]) -> Iterator[Finding]:
    """A finding per input that a program may ignore, or one that all matter."""
    effects = _measure_effects(worker, processes, names)
    if not effects:
        yield Finding("inputs", State.UNCHECKED, "nothing", f"the inputs are {_OPAQUE}", _OWN_AUDIT)
        return
    ignored = [
        finding
        for name, changes in effects.items()
        if (finding := _find_ignored(name, changes, len(names))) is not None
    ]
    yield from ignored
    if not ignored:
        yield Finding("inputs", State.FINE, f"{len(effects)} matter")


def _measure_effects(worker: _AuditWorker, processes: Processes, names: list[str]) -> dict[str, list[bool | None]]:
    """By input, per trial where it was drawn anew: is the own program's answer another one?

    None: the program failed on that mixture. An input is not tried further once it mattered.
    """
    effects: dict[str, list[bool | None]] = {}
    for index, trial in enumerate(names):
        for name, mixture in worker.mix_inputs(index).items():
            changes = effects.setdefault(name, [])
            if mixture is None or True in changes:
                continue
            with closing(processes.start()) as execution:
                answer = _copy_answer(execution.ask_outputs(trial, mixture))
            changes.append(
                None if isinstance(answer, Diagnostic) else not worker.accepts_outputs("inputs", index, answer)
            )
    return effects


def _find_ignored(name: str, changes: list[bool | None], trials: int) -> Finding | None:
    """What is wrong with an input, by what drawing it anew did; None: it matters."""
    tried = f"{name or 'the input'} drawn anew, everything else kept"
    if True in changes:
        return None
    if False in changes:
        reason = f"the own program's answer stays right at {changes.count(False)} trials: a program may ignore it"
        return Finding("inputs", State.FAULTY, tried, reason, "a reference that uses it, or a task without it")
    reason = (
        "the own program fails on inputs of two trials" if changes else "no two trials differ there in numbers only"
    )
    return Finding("inputs", State.UNCHECKED, tried, reason, "two trials of one shape with other numbers")
