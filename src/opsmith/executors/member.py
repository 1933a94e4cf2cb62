"""What runs on a machine of the cluster: the local executor, asked in JSON (`wire`).

It knows nothing of Ray, which makes an actor of it. Tasks and programs of others are confined on each machine as they
are on one: authors' code runs in the pool's workers, never in the member.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from opsmith.executors.local import LocalExecutor
from opsmith.executors.versions import versions
from opsmith.executors.wire import pack, read, refusal, unpack
from opsmith.models import ChatModel, Request
from opsmith.records import Boundary, Outcome, Task, Verdict, to_json
from opsmith.settings import Settings
from opsmith.targets import get_target

MEMBERS_BUSINESS = {"model", "noise", "workers", "trust_tasks"}  # the settings that a member is told

Work = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class Member:
    """`order`: the settings that are its business, and the run's tasks. Every answer is one of `wire`.

    `room`: the processors that it may use; it has no more workers than that.
    """

    def __init__(self, order: bytes, room: int) -> None:
        self._order = order
        self._room = room
        self._executor: LocalExecutor | None = None
        self._model: ChatModel | None = None

    async def begin(self) -> bytes:
        """What this machine computes with, and why it may not judge these tasks ("": it may)."""
        return await _answer(self._begin, self._order)

    async def judge(self, asked: bytes) -> bytes:
        """The verdict on `source` for `task`."""
        return await _answer(self._judge, asked)

    async def complete(self, asked: bytes) -> bytes:
        """The computing model's reply to a request."""
        return await _answer(self._complete, asked)

    async def _begin(self, order: dict[str, Any]) -> dict[str, Any]:
        found = {"versions": versions(), "problem": ""}
        try:
            tasks = [read(Task, task) for task in order["tasks"]]
            for name in {task.target for task in tasks}:
                get_target(name)
            with contextlib.ExitStack() as stack:
                executor = stack.enter_context(LocalExecutor(self._settings(order), tasks))
                stack.pop_all()  # it stays open as long as the member lives
            self._executor = executor
        except Exception as error:  # of another version, perhaps: who asked compares versions first
            found["problem"] = str(error) or type(error).__name__
        return {"found": found}

    def _settings(self, order: dict[str, Any]) -> Settings:
        settings = Settings(**order["settings"])
        return settings.model_copy(update={"workers": min(settings.workers, self._room)})

    async def _judge(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._executor is not None
        verdict = await self._executor.judge.judge(read(Task, asked["task"]), asked["source"])
        return {"found": to_json(verdict), "again": _may_be_ours(verdict)}

    async def _complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._executor is not None
        self._model = self._model or self._executor.model()
        return {"found": to_json(await self._model.complete(read(Request, asked)))}


async def _answer(work: Work, asked: bytes) -> bytes:
    """The work's answer; an error as one, so that no object of an exception leaves the machine."""
    try:
        return pack(await work(unpack(asked)))
    except Exception as error:
        return pack(refusal(error))


def _may_be_ours(verdict: Verdict) -> bool:
    """Whether a failing machine may be why there is no verdict."""
    return verdict.outcome is Outcome.UNJUDGED and verdict.charged_to in (Boundary.SANDBOX, Boundary.OURS)
