"""What runs on a machine of the cluster: the local executor, asked in JSON (`wire`).

It knows nothing of Ray, which makes an actor of it. Tasks and programs of others are confined on each machine as they
are on one: authors' code runs in the pool's workers, never in the member.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from opsmith.devices.describe import describe_device
from opsmith.devices.probing import list_own_gpus
from opsmith.executors.cluster import PROCESSOR
from opsmith.executors.local import LocalExecutor
from opsmith.executors.versions import list_versions
from opsmith.executors.wire import pack_message, read_record, refuse_error, unpack_message
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import write_report
from opsmith.models import ChatModel, Request
from opsmith.records import Boundary, Level, Outcome, Task, to_json
from opsmith.settings import Settings

MEMBERS_BUSINESS = {  # the settings that a member is told
    *("model", "noise", "workers", "candidate_seconds", "trial_seconds", "trust_tasks")
}

Work = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class ClusterMember:
    """`order`: the settings that are its business, and the run's tasks. Every answer is one of `wire`.

    `room`: the processors that it may use; it has no more workers than that.
    """

    def __init__(self, order: bytes, room: int) -> None:
        self._order = order
        self._room = room
        self._executor: LocalExecutor | None = None
        self._model: ChatModel | None = None

    async def begin(self) -> bytes:
        """What this machine computes with and measures on, and why it may not judge these tasks ("": it may)."""
        return await _answer_message(self._begin_order, self._order)

    async def judge(self, message: bytes) -> bytes:
        """The verdict on `source` for `task`."""
        return await _answer_message(self._judge_candidate, message)

    async def measure(self, message: bytes) -> bytes:
        """The reports that fill an order, once this machine's processor is had alone."""
        return await _answer_message(self._fill_order, message)

    async def complete(self, message: bytes) -> bytes:
        """The computing model's reply to a request."""
        return await _answer_message(self._complete_request, message)

    async def _begin_order(self, order: dict[str, Any]) -> dict[str, Any]:
        status = {"versions": list_versions(), "problem": "", "devices": {}}
        try:
            status["devices"] = {PROCESSOR: describe_device().digest, **list_own_gpus()}
            tasks = [read_record(Task, task) for task in order["tasks"]]
            status["versions"] = list_versions({task.target for task in tasks})
            settings = Settings(**order["settings"])
            settings = settings.replace(workers=min(settings.place.workers, self._room))
            with contextlib.ExitStack() as stack:
                executor = stack.enter_context(LocalExecutor(settings, tasks))
                stack.pop_all()  # it stays open as long as the member lives
            self._executor = executor
        except Exception as error:  # of another version, perhaps: who asked compares versions first
            status["problem"] = str(error) or type(error).__name__
        return {"found": status}

    async def _judge_candidate(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._executor is not None
        task, level = read_record(Task, message["task"]), Level(message["level"])
        judge = self._executor.judge.with_secret(message["secret"])  # the run's, which no machine has of its own
        verdict = await judge.judge(task, message["source"], level)
        # whether a failing machine may be why there is no verdict
        may_be_ours = verdict.outcome is Outcome.UNJUDGED and verdict.charged_to in (Boundary.SANDBOX, Boundary.OURS)
        return {"found": to_json(verdict), "again": may_be_ours}

    async def _fill_order(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._executor is not None
        order = read_record(SpeedOrder, message)
        return {"found": [write_report(report) async for report in self._executor.measurer.measure(order)]}

    async def _complete_request(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._executor is not None
        self._model = self._model or self._executor.make_models().own
        return {"found": to_json(await self._model.complete(read_record(Request, request)))}


async def _answer_message(work: Work, message: bytes) -> bytes:
    """The work's answer; an error as one, so that no object of an exception leaves the machine."""
    try:
        return pack_message(await work(unpack_message(message)))
    except Exception as error:
        return pack_message(refuse_error(error))
