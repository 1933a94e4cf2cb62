"""Verdicts on the programs of many task files: one for each file, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from opsmith.agents.reply import read_reply
from opsmith.benchmarks import read_task_file
from opsmith.errors import TaskError, UsageError
from opsmith.records import Boundary, Diagnostic, Outcome, Task, Verdict
from opsmith.targets import get_target
from opsmith.verify.pool import Pool
from opsmith.verify.verifier import unjudged


@dataclass(frozen=True)
class Given:
    """What to judge: a program, a reply that holds one, or neither: each file's own program."""

    impl: str | None = None
    reply: str | None = None
    repair: bool = False  # apply the target's repair of resource errors first


def judge_files(paths: Iterable[Path], given: Given, pool: Pool) -> Iterator[tuple[str, Verdict]]:
    """(task id, verdict) per file, in order; the work is done in parallel."""
    waiting = [(path.stem, _submit(path, given, pool)) for path in paths]
    return ((name, future.result()) for name, future in waiting)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0: all passed; 1: some were refused; 2: some could not be checked."""
    codes = {Outcome.PASSED: 0, Outcome.REFUSED: 1, Outcome.UNJUDGED: 2}
    return max((codes[verdict.outcome] for verdict in verdicts), default=0)


def _submit(path: Path, given: Given, pool: Pool) -> Future[Verdict]:
    try:
        task = read_task_file(path)
    except (TaskError, UsageError) as error:
        return _done(_bad_file(str(error), error.diagnostics if isinstance(error, TaskError) else ()))
    if given.reply is not None:
        return _submit_reply(task, given, pool)
    source = task.impl if given.impl is None else given.impl
    if source is None:
        return _done(_bad_file(f"{path}: the file has no impl of its own; try: --impl FILE"))
    return pool.submit(task, _repaired(task, source, given))


def _submit_reply(task: Task, given: Given, pool: Pool) -> Future[Verdict]:
    target = get_target(task.target)
    found = read_reply(target, task, given.reply or "")
    if found.source is None:
        return _done(found.refusal(target.verifier))
    return pool.submit(task, _repaired(task, found.source, given))


def _repaired(task: Task, source: str, given: Given) -> str:
    return (get_target(task.target).repair(task, source) if given.repair else None) or source


def _bad_file(message: str, findings: tuple[Diagnostic, ...] = ()) -> Verdict:
    finding = Diagnostic("TASK", "the task file", message, "a file that can be checked")
    verdict = unjudged("", Boundary.TASK, finding)
    return replace(verdict, candidate="", errors=findings or verdict.errors)


def _done(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future
