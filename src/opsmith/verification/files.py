"""Verdicts on the programs of many task files: one for each file, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from opsmith.agents.reply import ReadReply, read_reply
from opsmith.benchmarks import read_task_file
from opsmith.errors import TaskError, UsageError
from opsmith.records import Boundary, Diagnostic, Outcome, Task, Verdict
from opsmith.targets import get_target
from opsmith.verification.pool import Pool
from opsmith.verification.verifier import unjudged, with_dropped


@dataclass(frozen=True)
class Given:
    """What to judge: a program, a reply that holds one, or neither: each file's own program."""

    impl: str | None = None
    reply: str | None = None
    repair: bool = False  # apply the target's repair of resource errors first


def judge_files(paths: Iterable[Path], given: Given, pool: Pool) -> Iterator[tuple[str, Verdict]]:
    """(task id, verdict) per file, in order; the work is done in parallel."""
    waiting = [(path.stem, *_submit(path, given, pool)) for path in paths]
    return ((name, with_dropped(future.result(), found)) for name, future, found in waiting)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0: all passed; 1: some were refused; 2: some could not be checked."""
    codes = {Outcome.PASSED: 0, Outcome.REFUSED: 1, Outcome.UNJUDGED: 2}
    return max((codes[verdict.outcome] for verdict in verdicts), default=0)


def _submit(path: Path, given: Given, pool: Pool) -> tuple[Future[Verdict], ReadReply]:
    """The verdict to come, and where its program was found."""
    try:
        task = read_task_file(path)
    except (TaskError, UsageError) as error:
        findings = error.diagnostics if isinstance(error, TaskError) else ()
        return _done(_bad_file(str(error), findings)), ReadReply(None)
    found = _program(task, given)
    if found.source is not None:
        return pool.submit(task, _repaired(task, found.source, given)), found
    if given.reply is not None:
        return _done(found.refusal(get_target(task.target).verifier)), found
    return _done(_bad_file(f"{path}: the file has no impl of its own; try: --impl FILE")), found


def _program(task: Task, given: Given) -> ReadReply:
    if given.reply is not None:
        return read_reply(get_target(task.target), task, given.reply)
    return ReadReply(task.impl if given.impl is None else given.impl)


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
