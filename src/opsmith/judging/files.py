"""Verdicts on the programs of many task files: one for each file, whatever is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opsmith.agents.reply import ReadReply, read_reply
from opsmith.errors import OptionError, TargetError, TaskError, UsageError
from opsmith.judging.pool import Pool
from opsmith.judging.verifier import leave_unjudged, with_dropped
from opsmith.records import Boundary, Diagnostic, Level, Outcome, Task, Verdict
from opsmith.suites import PLAIN, name_files, read_task_file
from opsmith.targets import get_target
from opsmith.targets.capabilities import (
    FRAME,
    WRITE_FRAME,
    is_frame,
    name_program_place,
    repair_program,
)
from opsmith.targets.faults import charged_to_target
from opsmith.targets.lookup import is_language_file
from opsmith.targets.problem import TRY_TARGET, explain_lack_of_language
from opsmith.targets.protocols import Suffixed

_MESSAGE = re.compile(r"(\S+): given (.*?); expected (.*?)(?:; try: (.*))?", re.DOTALL)


@dataclass(frozen=True)
class ProgramSource:
    """What to judge: a program, a reply that holds one, or neither: each file's own program."""

    impl: str | None = None
    reply: str | None = None
    repair: bool = False  # apply the target's repair of resource errors first
    target: str | None = None  # the language of all programs; None: that of each file
    options: Mapping[str, Any] = field(default_factory=dict)  # of that language


@dataclass(frozen=True)
class FileVerdict:
    """What became of one file."""

    name: str  # its id, or its path where others that are judged have that id
    verdict: Verdict
    task: Task | None  # None: its file is wrong


def judge_files(
    paths: Sequence[Path], source: ProgramSource, pool: Pool, level: Level = Level.FULL
) -> Iterator[FileVerdict]:
    """One verdict per file, in order; the work is done in parallel.

    Raises OptionError, and UsageError or TaskError where the language that is asked for is a file that is none, or none
    is asked for by anybody.
    """
    if source.target is not None and is_language_file(source.target):
        get_target(source.target)
    waiting = [
        (name, *_submit_file(path, source, pool, level)) for name, path in zip(name_files(paths), paths, strict=True)
    ]
    lacking = [name for name, task, *_ in waiting if task is not None and explain_lack_of_language(task)]
    if lacking and len(lacking) == len(waiting):  # it is the command that lacks something, not the files
        raise UsageError(f"{', '.join(lacking)}: no language is stated; {TRY_TARGET}")
    for name, task, future, reply in waiting:
        yield FileVerdict(name, with_dropped(future.result(), reply), task)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0: all passed; 1: some were refused; 2: some could not be checked."""
    codes = {Outcome.PASSED: 0, Outcome.REFUSED: 1, Outcome.UNJUDGED: 2}
    return max((codes[verdict.outcome] for verdict in verdicts), default=0)


def _submit_file(
    path: Path, source: ProgramSource, pool: Pool, level: Level
) -> tuple[Task | None, Future[Verdict], ReadReply]:
    """The task, unless its file is wrong, the verdict to come, and where its program was found."""
    try:
        return _submit_program(path, source, pool, level)
    except TaskError as error:
        return None, _wrap_verdict(_bad_file(str(error), error.diagnostics)), ReadReply(None)
    except OptionError:
        raise
    except (TargetError, UsageError) as error:  # its code fails, or it is not there
        if source.target is not None and isinstance(error, UsageError):
            raise  # the command names it, not the file
        finding = Diagnostic("TARGET", f"{path}: its language", str(error), "a language that is there and works")
        return None, _wrap_verdict(_leave_unread(Boundary.TARGET, finding)), ReadReply(None)


def _submit_program(
    path: Path, source: ProgramSource, pool: Pool, level: Level
) -> tuple[Task | None, Future[Verdict], ReadReply]:
    task = read_task_file(path, source.target, source.options)
    if message := explain_lack_of_language(task):
        return task, _wrap_verdict(_bad_file(message)), ReadReply(None)
    if source.reply is not None:
        reply = read_reply(get_target(task.target), task, source.reply)
    else:
        reply = ReadReply(task.impl if source.impl is None else source.impl)
    if source.impl is None and reply.source is not None and source.reply is None and is_frame(task, reply.source):
        finding = Diagnostic("FORMAT", f"{path}: {name_program_place(task)}", FRAME, "a program to judge", WRITE_FRAME)
        return task, _wrap_verdict(_leave_unread(Boundary.CANDIDATE, finding)), reply
    if reply.source is not None:
        with charged_to_target(task.target, "repair_program"):
            repaired = repair_program(get_target(task.target), task, reply.source) if source.repair else None
        return task, pool.submit(task, repaired or reply.source, level), reply
    if source.reply is not None:
        return task, _wrap_verdict(reply.make_refusal(get_target(task.target).verifier)), reply
    return task, _wrap_verdict(_leave_unread(Boundary.TASK, _explain_no_program(path, task))), reply


def _explain_no_program(path: Path, task: Task) -> Diagnostic:
    target = get_target(task.target)
    beside = f", or a program in {PLAIN}/{path.stem}{target.suffix} beside it" if isinstance(target, Suffixed) else ""
    remedy = f"--impl FILE{beside}"
    return Diagnostic("TASK", str(path), "no program of its own", "a program to judge", remedy)


def _bad_file(message: str, findings: tuple[Diagnostic, ...] = ()) -> Verdict:
    return _leave_unread(Boundary.TASK, *(findings or (_split_message(message),)))


def _split_message(message: str) -> Diagnostic:
    """A message that says where, what was given, what was expected and what to try, as a finding that says it once."""
    parts = _MESSAGE.fullmatch(message)
    if parts is None:
        return Diagnostic("TASK", "the task file", message, "a file that can be checked")
    return Diagnostic("TASK", parts[1], parts[2], parts[3], parts[4] or "")


def _leave_unread(charged_to: Boundary, *findings: Diagnostic) -> Verdict:
    """That no program was found, for a reason that is no program's."""
    return replace(leave_unjudged("", charged_to, findings[0]), candidate="", errors=findings)


def _wrap_verdict(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future
