"""Verdicts on replies that another system got from its model, awaited in that system's event loop.

Replies are read in the calling thread, never in several at once: two threads that parse at the same time can make
CPython 3.11 fail (`SystemError: AST constructor recursion depth mismatch`). Only waiting for a worker leaves the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyio import to_thread

from opsmith import api
from opsmith.agents.reply import read_reply
from opsmith.bridges.questions import AS_STATED, AskedLanguage, find_task
from opsmith.bridges.rewards import RIGHT, SpeedReward, reward_speed
from opsmith.errors import OpsmithError
from opsmith.judging.trust import is_bundled
from opsmith.judging.verifier import with_dropped
from opsmith.records import Outcome, Task, Verdict
from opsmith.targets import get_target


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
    speed: SpeedReward | None = None  # None: it was not asked for, or the program is wrong

    @property
    def reward(self) -> float:
        """0 for a wrong reply, 1 for a right one, up to 2 where speed counts."""
        return (RIGHT + (self.speed.bonus if self.speed is not None else 0.0)) if self.verdict.passed else 0.0

    @property
    def plain_facts(self) -> dict[str, object]:
        speed = {} if self.speed is None else {"speed": self.speed.plain_facts}
        return {**describe_verdict(self.verdict), **speed}


@dataclass(frozen=True)
class TaskHandle:
    """What finds the task of a question again, and how its replies are judged."""

    name: str
    digest: str
    language: AskedLanguage = AS_STATED
    trust_tasks: bool = False
    rewards_speed: bool = False

    def find_task(self) -> Task:
        """Raises UsageError when its file has changed since it was handle."""
        return find_task(self.name, self.digest, self.language)


async def judge_reply(handle: TaskHandle, reply: str) -> JudgedReply:
    """The verdict on a reply to a task, and the reward of its speed if that is asked for. Raises NotJudgedError."""
    try:
        task = handle.find_task()
        verdict, program = await _verify_reply(task, reply, handle.trust_tasks)
    except OpsmithError as error:  # no worker, or a task that may not be judged here, or is not what was asked
        raise NotJudgedError(str(error)) from error
    if verdict.outcome is Outcome.UNJUDGED:
        raise NotJudgedError(verdict.message, verdict, program)
    if not handle.rewards_speed or not verdict.passed or program is None:
        return JudgedReply(verdict, program)
    return JudgedReply(verdict, program, await reward_speed(task, program, handle.trust_tasks))


async def _verify_reply(task: Task, reply: str, trust_tasks: bool) -> tuple[Verdict, str | None]:
    target = get_target(task.target)
    answer = read_reply(target, task, reply)
    if answer.source is None:
        return answer.make_refusal(target.verifier), None
    is_bundled(task)  # remembered: the pool's threads would otherwise parse the task's file to find out
    future = api.default_pool(trust_tasks).submit(task, answer.source)
    verdict = await to_thread.run_sync(future.result, abandon_on_cancel=True)
    return with_dropped(verdict, answer), answer.source


def describe_verdict(verdict: Verdict) -> dict[str, object]:
    """A verdict as plain data for another system's records, less its message."""
    return {
        "stage": verdict.stage.name,
        "outcome": verdict.outcome.value,
        "charged_to": verdict.charged_to.value,
        "trials": verdict.trials,
        **({"undecided": verdict.undecided} if verdict.undecided else {}),
        "max_abs_error": verdict.max_abs_error,
        "warnings": list(verdict.public_warnings),
        "verifier": verdict.verifier,
        **({"build": verdict.build} if verdict.build else {}),
    }
