"""The machines at work: each piece goes to the one with the most room among those that take part (`roster`).

What a lost machine had in hand is given to others, a bounded number of times, and then nobody has an answer. When there
is no machine, work waits for one, and that is said. An answer for which the machine itself may be at fault is asked for
once more, elsewhere if there is another.

All of it happens in an event loop in a thread of its own, so that a run's loop only waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from types import ModuleType, TracebackType
from typing import Any, Self

from opsmith.errors import UsageError
from opsmith.executors.roster import Roster, Seat, list_lines

LOOK_S = 1.0  # between two looks at the cluster
ATTEMPTS = 5  # machines that may be lost over one piece of work
PATIENCE_S = 15.0  # for members to start, before it is said that the run waits for them
OPEN_S = 60.0  # for the first member, before the run begins without one

_log = logging.getLogger("opsmith.ray")


class LostError(Exception):
    """Nobody has an answer: every machine that had the work was lost over it."""


class Fleet:
    """The cluster that `ray` has joined, at work; a context manager. `where` names the cluster in messages."""

    def __init__(self, ray: ModuleType, order: bytes, workers: int, where: str) -> None:
        self._roster = Roster(ray, order, workers)
        self._failures = (ray.exceptions.RayError, ValueError)
        self._workers, self._where = workers, where
        self._warning = ""
        self._devices: dict[str, str] = {}  # digests of what was measured on last, by kind
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="opsmith.executors.fleet", daemon=True)
        self._watching: asyncio.Task[None] | None = None

    async def ask_member(self, what: str, message: bytes, kind: str = "") -> dict[str, Any]:
        """The answer (`wire`) of one member's method; from any event loop. Raises LostError.

        `kind`: of the device that is measured on (cpu, cuda); a machine that has none is not asked.
        """
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._ask_until_sure(what, message, kind), self._loop)
        )

    def __enter__(self) -> Self:
        """Raises UsageError when there are machines and none of them may take part."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._await_members(), self._loop).result()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _ask_until_sure(self, what: str, message: bytes, kind: str) -> dict[str, Any]:
        doubted: Seat | None = None
        answer: dict[str, Any] = {}
        lost = ""
        for _ in range(ATTEMPTS):
            seat = await self._await_seat(doubted, kind)
            try:
                answer = await self._roster.ask_member(seat, what, message, kind)
            except self._failures as error:
                lost = list_lines(error)[0]
                self._roster.lose_member(seat, lost)
                continue
            if doubted is not None or not answer.get("again"):
                return answer
            doubted = seat
            await asyncio.sleep(2 * LOOK_S)  # a machine that is going has gone by then
        if answer:
            return answer
        raise LostError(f"{ATTEMPTS} machines were lost over it; the last: {lost}")

    async def _await_seat(self, but: Seat | None, kind: str) -> Seat:
        """The member with the most room, another than `but` if there is one; waits while there is none.

        Who measures goes where the same device is as before, if one is left: its figures can be compared. Raises
        LostError where no machine has a device of the kind.
        """
        began = time.monotonic()
        while not self._roster.seats:
            self._report_waiting(time.monotonic() - began)
            await asyncio.sleep(LOOK_S / 10)
        self._warning = ""
        fitting = [seat for seat in self._roster.seats if not kind or seat.find_device(kind)]
        if not fitting:
            raise LostError(f"no machine of the cluster has a device {kind}; try: one whose `opsmith devices` lists it")
        candidates = [seat for seat in fitting if seat is not but]
        if kind:
            candidates = [
                seat for seat in candidates if _name_device(seat, kind) == self._devices.get(kind)
            ] or candidates
        chosen = min(candidates or fitting, key=lambda seat: (seat.load + 1) / seat.room)
        if kind:
            self._devices[kind] = _name_device(chosen, kind)
        return chosen

    def _report_waiting(self, waited_s: float) -> None:
        """What the run waits for, once for as long as it is the same."""
        starting = ", ".join(machine.name for machine in self._roster.starting)
        if starting and waited_s < PATIENCE_S:
            return
        text = f"a machine to join the cluster ({self._where})"
        if starting:
            text = f"a member to start on {starting}: up to {self._workers} processors must be free there"
        self._warn_once(f"no machine takes part: the run waits for {text}; Ctrl-C ends it in good order")

    def _warn_once(self, text: str) -> None:
        if text != self._warning:
            _log.warning("%s", text)
        self._warning = text

    async def _await_members(self) -> None:
        roster, began = self._roster, time.monotonic()
        machines = await roster.refresh_members()
        self._watching = asyncio.create_task(self._watch_cluster())
        while machines and not roster.seats and (waited := time.monotonic() - began) < OPEN_S:
            if all(machine.id in roster.refused for machine in machines):
                raise UsageError(f"--executor ray: {roster.refused[machines[0].id]}")
            self._report_waiting(waited)
            await asyncio.sleep(LOOK_S / 20)

    async def _watch_cluster(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._roster.refresh_members()
            except Exception as error:  # Ray has many for a head that is gone, and few of them are public
                self._warn_once(f"the cluster's head does not answer ({list_lines(error)[0]})")

    async def _end_tasks(self) -> None:
        ours = asyncio.all_tasks() - {asyncio.current_task()}
        for task in ours:
            task.cancel()
        await asyncio.gather(*ours, return_exceptions=True)
        self._roster.end_members()


def _name_device(seat: Seat, kind: str) -> str:
    """The digest of its device of a kind."""
    return seat.devices.get(seat.find_device(kind) or "", "")
