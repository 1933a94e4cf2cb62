"""Audits of many task files: one for each file, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsmith.benchmarks import read_task_file
from opsmith.errors import TaskError, UsageError, VerifierError
from opsmith.targets.audited import Finding, State
from opsmith.verification.audit import findings_from_json
from opsmith.verification.pool import Pool


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
