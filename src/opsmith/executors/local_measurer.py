"""The measurer of this machine: one order after another, in a thread of its own, while the run's event loop goes on.

The thread lives as long as the measurer: the processes that time programs are its children, and end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

from opsmith.devices.probing import list_own_gpus
from opsmith.errors import OpsmithError, VerifierError
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.objectives import choose_device_kind, is_carried_only
from opsmith.measuring.orders import SpeedOrder, explain_lack_of_figures
from opsmith.measuring.record import SpeedReport
from opsmith.records import Task
from opsmith.remote.filling import fill_order

_Outcome = SpeedReport | Exception | None  # None: that was all


@dataclass(frozen=True)
class _Waiting:
    order: SpeedOrder
    hand_over: Callable[[_Outcome], None]
    abandoned: threading.Event = field(default_factory=threading.Event)  # nobody waits any more


class LocalMeasurer:
    """Fits `Measurer`. Nothing starts before the first order."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._orders: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve_orders, name="opsmith.measuring", daemon=True)

    def explain_lack(self, task: Task) -> str:
        kind = choose_device_kind(task)
        if is_carried_only(task) and not any(name.partition(":")[0] == kind for name in list_own_gpus()):
            return f"target {task.target}: no device here that its programs are timed on; try: opsmith devices"
        return explain_lack_of_figures(task)

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        """Raises VerifierError for a failure of ours that no report can tell."""
        loop = asyncio.get_running_loop()
        outcomes: asyncio.Queue[_Outcome] = asyncio.Queue()
        waiting = _Waiting(order, partial(_hand_over, loop, outcomes))
        if not self._thread.is_alive():
            self._thread.start()
        self._orders.put(waiting)
        try:
            while (outcome := await outcomes.get()) is not None:
                if isinstance(outcome, Exception):
                    raise VerifierError(f"measuring: {outcome or type(outcome).__name__}") from outcome
                yield outcome
        finally:
            waiting.abandoned.set()

    def close(self) -> None:
        """What is being measured is finished, and nobody waits for it."""
        self._orders.put(None)

    def _serve_orders(self) -> None:
        with TimingRoom() as room:
            while (waiting := self._orders.get()) is not None:
                with contextlib.suppress(RuntimeError):  # the event loop is closed: the run was interrupted
                    self._serve_order(waiting, room)

    def _serve_order(self, waiting: _Waiting, room: TimingRoom) -> None:
        try:
            for report in fill_order(waiting.order, self._pool, room):
                if waiting.abandoned.is_set():
                    return
                waiting.hand_over(report)
        except (OpsmithError, OSError, ValueError) as error:
            waiting.hand_over(error)
        else:
            waiting.hand_over(None)


def _hand_over(loop: asyncio.AbstractEventLoop, outcomes: asyncio.Queue[_Outcome], outcome: _Outcome) -> None:
    """From another thread. Raises RuntimeError when the loop is closed."""
    loop.call_soon_threadsafe(outcomes.put_nowait, outcome)
