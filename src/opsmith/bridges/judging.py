"""What is a reply worth that another system got from its model? The verdict, awaited in that system's event loop.

Replies are read in the calling thread, never in several at once: two threads that parse at the same time can make
CPython 3.11 fail (`SystemError: AST constructor recursion depth mismatch`). Only waiting for a worker leaves the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyio import to_thread

from opsmith import api
from opsmith.agents.reply import read_reply
from opsmith.bridges.questions import task_of
from opsmith.errors import OpsmithError
from opsmith.records import Outcome, Verdict
from opsmith.targets import get_target
from opsmith.verification.trust import is_bundled
from opsmith.verification.verifier import with_dropped


class NotJudgedError(Exception):
    """There is no verdict on the candidate, for a reason that is not the candidate's: it must not count as wrong."""

    def __init__(self, reason: str, verdict: Verdict | None = None, program: str | None = None) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.program = program


@dataclass(frozen=True)
class JudgedReply:
    """A verdict that PASSED or REFUSED, and the program it is on; None: the reply held none."""

    verdict: Verdict
    program: str | None

    @property
    def facts(self) -> dict[str, object]:
        return facts(self.verdict)


async def judge(name: str, digest: str, reply: str, trust_tasks: bool = False) -> JudgedReply:
    """The verdict on a reply to the task of that name and content. Raises NotJudgedError."""
    try:
        verdict, program = await _judge(name, digest, reply, trust_tasks)
    except OpsmithError as error:  # no worker, or a task that may not be judged here, or is not what was asked
        raise NotJudgedError(str(error)) from error
    if verdict.outcome is Outcome.UNJUDGED:
        raise NotJudgedError(verdict.message, verdict, program)
    return JudgedReply(verdict, program)


async def _judge(name: str, digest: str, reply: str, trust_tasks: bool) -> tuple[Verdict, str | None]:
    task = task_of(name, digest)
    target = get_target(task.target)
    found = read_reply(target, task, reply)
    if found.source is None:
        return found.refusal(target.verifier), None
    is_bundled(task)  # remembered: the pool's threads would otherwise parse the task's file to find out
    future = api.default_pool(trust_tasks).submit(task, found.source)
    verdict = await to_thread.run_sync(future.result, abandon_on_cancel=True)
    return with_dropped(verdict, found), found.source


def facts(verdict: Verdict) -> dict[str, object]:
    """A verdict as plain data for another system's records, less its message."""
    return {
        "stage": verdict.stage.name,
        "outcome": verdict.outcome.value,
        "charged_to": verdict.charged_to.value,
        "trials": verdict.trials,
        "max_abs_error": verdict.max_abs_error,
        "warnings": list(verdict.warnings),
        "verifier": verdict.verifier,
    }
