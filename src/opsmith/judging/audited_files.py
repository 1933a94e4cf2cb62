"""Audits of many task files: one for each file, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.errors import TargetError, TaskError, UsageError, VerifierError
from opsmith.judging.audit import findings_from_json
from opsmith.judging.pool import Pool
from opsmith.records import Task
from opsmith.suites import name_files, read_task_file
from opsmith.targets.audit import Finding, State


@dataclass(frozen=True)
class Audit:
    """All findings on one task file, in the order of the checks."""

    task: str  # its id, or its path where others that are audited have that id
    findings: tuple[Finding, ...]

    @property
    def state(self) -> State:
        """The worst of its findings; a note makes nothing worse."""
        states = {finding.state for finding in self.findings}
        return next((state for state in (State.FAULTY, State.UNCHECKED) if state in states), State.FINE)

    def findings_of(self, state: State) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.state is state)


def audit_files(
    paths: Sequence[Path], pool: Pool, target: str | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Audit]:
    """One audit per file, in order, whatever is wrong with it; the work is done in parallel.

    `target`: the language that their problems are asked for in, with these options; None: that of each file, which of a
    problem file is none.
    """
    read_task = partial(read_task_file, target=target, options=options)
    waiting = [_submit_audit(path, pool, read_task) for path in paths]
    return (Audit(name, _read_answer(future)) for name, future in zip(name_files(paths), waiting, strict=True))


def exit_code(audits: Iterable[Audit]) -> int:
    """0: all fine; 1: some are faulty; 2: none is, but something could not be checked."""
    states = {audit.state for audit in audits}
    return 1 if State.FAULTY in states else 2 if State.UNCHECKED in states else 0


def _submit_audit(path: Path, pool: Pool, read_task: Callable[[Path], Task]) -> Future[dict[str, Any]] | Finding:
    try:
        return pool.audit(read_task(path))
    except TaskError as error:
        message = "\n".join(finding.block() for finding in error.diagnostics) or str(error)
        return Finding("file", State.FAULTY, "reading it", message)
    except (UsageError, TargetError) as error:  # a target that is not there, or whose code fails
        return Finding("file", State.UNCHECKED, "reading it", str(error))


def _read_answer(future: Future[dict[str, Any]] | Finding) -> tuple[Finding, ...]:
    if isinstance(future, Finding):
        return (future,)
    try:
        return findings_from_json(future.result())
    except VerifierError as error:
        remedy = "look for code of the task that never ends, exits or takes all memory"
        return (Finding("file", State.UNCHECKED, "its checks", str(error), remedy),)
    except (UsageError, TargetError) as error:
        return (Finding("file", State.UNCHECKED, "its checks", str(error)),)
