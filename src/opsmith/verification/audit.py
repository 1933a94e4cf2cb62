"""Is a task file itself right? The form of the answer, and who gives it for each language.

An audit asks what no verdict on a candidate can: would a wrong answer pass, does every input and every function matter,
is the reference a function of its inputs? It executes code of the task's author, so everything but tests asks
`Pool.audit`. It shows weak data, not that a reference means what its author had in mind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsmith.benchmarks import read_task_file
from opsmith.errors import TaskError, UsageError, VerifierError
from opsmith.records import Boundary, Outcome, Task, Verdict, to_json
from opsmith.verification.verifier import verify

if TYPE_CHECKING:
    from opsmith.verification.pool import Pool

AUDITS: dict[str, str] = {"step": "opsmith.targets.step.audit"}  # target -> module with `audit(task)`

CHECKS = ("data", "reference", "program", "answers", "tolerance", "inputs", "functions")  # in the order of the report


class State(StrEnum):
    """What a check showed, the best first."""

    FINE = "fine"
    NOTE = "note"  # worth knowing, and right
    UNCHECKED = "not checked"
    FAULTY = "faulty"


@dataclass(frozen=True)
class Finding:
    """What one check of a task file showed."""

    check: str  # one of CHECKS; file: it could not be read
    state: State
    tried: str  # what was done, in few words
    found: str = ""  # what passed that should not, or why it could not be checked; "" when fine
    remedy: str = ""


@dataclass(frozen=True)
class Audit:
    """All findings on one task file, in the order of the checks."""

    task: str
    findings: tuple[Finding, ...]

    @property
    def state(self) -> State:
        """The worst of its findings; a note makes nothing worse."""
        found = {finding.state for finding in self.findings}
        return next((state for state in (State.FAULTY, State.UNCHECKED) if state in found), State.FINE)

    def of(self, state: State) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.state is state)


def audit(task: Task, source: str) -> dict[str, Any]:
    """The findings on a task whose own program is `source` ("": it has none), as JSON; for worker processes."""
    ask = _audit_of(task.target)
    return {"findings": [to_json(finding) for finding in ask(task, source or None)]}


def findings_from_json(answer: Mapping[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding(**{**row, "state": State(row["state"])}) for row in answer["findings"])


def _audit_of(target: str) -> Callable[[Task, str | None], Iterable[Finding]]:
    if target not in AUDITS:
        return _program_only
    found: Callable[[Task, str | None], Iterable[Finding]] = import_module(AUDITS[target]).audit
    return found


def _program_only(task: Task, source: str | None) -> Iterator[Finding]:
    yield check_program(task, source)[0]
    found = f"the target {task.target} has no audit of its own; with one: {', '.join(AUDITS)}"
    yield Finding("data", State.UNCHECKED, "nothing", found)


def check_program(task: Task, source: str | None) -> tuple[Finding, Verdict | None]:
    """Does the file's own program pass as any candidate must?"""
    if source is None:
        remedy = "an `impl`: a program that is known to be right shows that the task can be solved"
        return Finding("program", State.UNCHECKED, "nothing", "the file has no `impl` of its own", remedy), None
    verdict = verify(task, source)
    if verdict.passed:
        return Finding("program", State.FINE, "passes"), verdict
    ours = verdict.outcome is Outcome.UNJUDGED and verdict.charged_to is not Boundary.TASK
    state = State.UNCHECKED if ours else State.FAULTY
    found = f"{verdict.outcome} at {verdict.stage.name}\n{verdict.message}"
    return Finding("program", state, "the file's own `impl`", found, "correct the `impl` or the reference"), verdict


# -- files


def audit_files(paths: Iterable[Path], pool: Pool) -> Iterator[Audit]:
    """One audit per file, in order, whatever is wrong with it; the work is done in parallel."""
    waiting = [(path.stem, _submit(path, pool)) for path in paths]
    return (Audit(name, _answer(future)) for name, future in waiting)


def exit_code(audits: Iterable[Audit]) -> int:
    """0: all fine; 1: some are faulty; 2: none is, but something could not be checked."""
    found = {audit.state for audit in audits}
    return 1 if State.FAULTY in found else 2 if State.UNCHECKED in found else 0


def _submit(path: Path, pool: Pool) -> Future[dict[str, Any]] | Finding:
    try:
        return pool.audit(read_task_file(path))
    except TaskError as error:
        found = "\n".join(finding.block() for finding in error.diagnostics) or str(error)
        return Finding("file", State.FAULTY, "reading it", found)
    except UsageError as error:  # of a target that is not there
        return Finding("file", State.UNCHECKED, "reading it", str(error))


def _answer(future: Future[dict[str, Any]] | Finding) -> tuple[Finding, ...]:
    if isinstance(future, Finding):
        return (future,)
    try:
        return findings_from_json(future.result())
    except VerifierError as error:
        remedy = "look for code of the task that never ends, exits or takes all memory"
        return (Finding("file", State.UNCHECKED, "its checks", str(error), remedy),)
    except UsageError as error:
        return (Finding("file", State.UNCHECKED, "its checks", str(error)),)
