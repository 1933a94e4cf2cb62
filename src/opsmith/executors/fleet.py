"""Which machine does the next piece of work? Members on the machines of a cluster, which join, die and are preempted.

There is one member per machine (`member`), an actor that is pinned to it and claims the processors that it works with.
Work goes to the member with the most room. What a lost member had in hand is given to others, a bounded number of
times, and then nobody has an answer; when there is no machine left, work waits for one, and that is said. A machine
that would not compute the same, or may not judge the run's tasks, takes no part.

All of it happens in an event loop in a thread of its own, so that a run's loop only waits, and so that looking for
machines goes on between two runs' loops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, Self

from opsmith.errors import OpsmithError, UsageError
from opsmith.executors.member import Member
from opsmith.executors.versions import differences, versions
from opsmith.executors.wire import unpack

LOOK_S = 1.0  # between two looks at the cluster
ATTEMPTS = 5  # machines that may be lost over one piece of work
STARTS = 3  # of a member that fails to start, before its machine is given up
PATIENCE_S = 15.0  # for members to start, before it is said that the run waits for them
OPEN_S = 60.0  # for the first member, before the run begins without one

_log = logging.getLogger("opsmith.ray")


class LostError(Exception):
    """Nobody has an answer: every machine that had the work was lost over it."""


@dataclass(frozen=True)
class Machine:
    """One machine of the cluster."""

    id: str
    name: str
    processors: int


@dataclass(eq=False)
class Seat:
    """Our end of one member."""

    machine: Machine
    actor: Any  # Ray's handle
    room: int  # processors that it claims
    load: int = 0  # pieces of work in hand


@dataclass
class Census:
    """What is known of machines that have no member."""

    starting: dict[Machine, asyncio.Task[None]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)  # by id: starts that failed
    refused: dict[str, str] = field(default_factory=dict)  # by id: why


class Fleet:
    """The members of a cluster that `ray` has joined; a context manager. `where` names the cluster in messages."""

    def __init__(self, ray: ModuleType, order: bytes, workers: int, where: str) -> None:
        self._ray, self._order, self._workers, self._where = ray, order, workers, where
        self._versions = versions()
        self._seats: list[Seat] = []
        self._census = Census()
        self._said = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="opsmith.executors.fleet", daemon=True)
        self._watching: asyncio.Task[None] | None = None

    async def ask(self, what: str, asked: bytes) -> dict[str, Any]:
        """The answer (`wire`) of one member's method; from any event loop. Raises LostError."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(what, asked), self._loop))

    def __enter__(self) -> Self:
        """Raises UsageError when there are machines and none of them may take part."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- work

    async def _ask(self, what: str, asked: bytes) -> dict[str, Any]:
        doubted: Seat | None = None
        lost = ""
        for _ in range(ATTEMPTS):
            seat = await self._free(doubted)
            try:
                answer = await self._answer(seat, what, asked)
            except (self._ray.exceptions.RayError, ValueError) as error:
                lost = _first_line(error)
                self._lose(seat, lost)
                continue
            if doubted is not None or not answer.get("again"):
                return answer
            doubted = seat
            await asyncio.sleep(2 * LOOK_S)  # a machine that is going has gone by then
        raise LostError(f"{ATTEMPTS} machines were lost over it; the last: {lost}")

    async def _answer(self, seat: Seat, what: str, asked: bytes) -> dict[str, Any]:
        seat.load += 1
        try:
            return unpack(await getattr(seat.actor, what).remote(asked))
        finally:
            seat.load -= 1

    async def _free(self, but: Seat | None) -> Seat:
        """The member with the most room, another than `but` if there is one; waits while there is none."""
        began = time.monotonic()
        while not self._seats:
            self._say(time.monotonic() - began)
            await asyncio.sleep(LOOK_S / 10)
        self._said = ""
        others = [seat for seat in self._seats if seat is not but]
        return min(others or self._seats, key=lambda seat: (seat.load + 1) / seat.room)

    def _lose(self, seat: Seat, why: str) -> None:
        """Take a member from the fleet; should its machine be there still, it gets a new one."""
        if seat in self._seats:
            self._seats.remove(seat)
            _log.warning("machine %s was lost: its work is given to others (%s)", seat.machine.name, why)
        self._kill(seat.actor)

    def _say(self, waited_s: float) -> None:
        """What the run waits for, once for as long as it is the same."""
        starting = ", ".join(machine.name for machine in self._census.starting)
        if starting and waited_s < PATIENCE_S:
            return
        text = f"a machine to join the cluster ({self._where})"
        if starting:
            text = f"a member to start on {starting}: up to {self._workers} processors must be free there"
        if text != self._said:
            _log.warning("no machine takes part: the run waits for %s; Ctrl-C ends it in good order", text)
        self._said = text

    # -- machines

    async def _open(self) -> None:
        machines = await self._look()
        self._watching = asyncio.get_running_loop().create_task(self._watch())
        began = time.monotonic()
        while machines and not self._seats and (waited := time.monotonic() - began) < OPEN_S:
            if all(machine.id in self._census.refused for machine in machines):
                raise UsageError(next(self._census.refused[machine.id] for machine in machines))
            self._say(waited)
            await asyncio.sleep(LOOK_S / 20)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except Exception as error:  # Ray has many for a head that is gone, and few of them are public
                _log.warning("the cluster's head does not answer (%s)", _first_line(error))

    async def _look(self) -> list[Machine]:
        """The machines that are there; a member is being started on each that has none and may have one."""
        machines = list(_machines(await asyncio.to_thread(self._ray.nodes)))
        census, there = self._census, {machine.id for machine in machines}
        for seat in [seat for seat in self._seats if seat.machine.id not in there]:
            self._lose(seat, "it has left the cluster")
        for machine in [machine for machine in census.starting if machine.id not in there]:
            census.starting.pop(machine).cancel()
        busy = {seat.machine.id for seat in self._seats} | {machine.id for machine in census.starting}
        for machine in machines:
            if machine.id not in busy and machine.id not in census.refused:
                census.starting[machine] = asyncio.get_running_loop().create_task(self._start(machine))
        return machines

    async def _start(self, machine: Machine) -> None:
        seat = Seat(machine, None, min(machine.processors, self._workers))
        try:
            seat.actor = self._actor(machine, seat.room)
            found = unpack(await seat.actor.begin.remote())["found"]
            problem = self._problem(machine, found["versions"], found["problem"])
        except (self._ray.exceptions.RayError, ValueError, LookupError, TypeError) as error:
            problem = self._failed(machine, error)
            self._kill(seat.actor)
        else:
            if problem:
                self._kill(seat.actor)
            else:
                self._seats.append(seat)
        finally:
            self._census.starting.pop(machine, None)
        if problem:
            self._census.refused[machine.id] = problem
            _log.warning("%s", problem)

    def _actor(self, machine: Machine, room: int) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  (with `ray`)

        place = NodeAffinitySchedulingStrategy(machine.id, soft=False)
        options = self._ray.remote(Member).options(num_cpus=room, scheduling_strategy=place, max_restarts=0)
        return options.remote(self._order)

    def _problem(self, machine: Machine, theirs: Mapping[str, str], problem: str) -> str:
        """Why the machine takes no part; "": it does."""
        if other := differences(self._versions, theirs):
            return (
                f"machine {machine.name} takes no part: it has {other}; expected the same, since results must be; "
                "try: install what is here there"
            )
        return f"machine {machine.name} takes no part: {problem}" if problem else ""

    def _failed(self, machine: Machine, error: Exception) -> str:
        """Why the machine is given up after one more failed start; "": it is not."""
        starts = self._census.failed[machine.id] = self._census.failed.get(machine.id, 0) + 1
        if starts < STARTS:
            return ""
        return f"machine {machine.name} takes no part: no member starts there: {_last_line(error)}"

    def _kill(self, actor: Any) -> None:
        if actor is not None:
            with contextlib.suppress(Exception):  # it is gone, or the whole cluster
                self._ray.kill(actor)

    async def _close(self) -> None:
        ours = asyncio.current_task()
        for task in asyncio.all_tasks() - {ours}:
            task.cancel()
        await asyncio.gather(*(asyncio.all_tasks() - {ours}), return_exceptions=True)
        for seat in self._seats:
            self._kill(seat.actor)


def _machines(nodes: list[dict[str, Any]]) -> Iterator[Machine]:
    """Those that are alive and have a processor to give; a head often has none."""
    for node in nodes:
        processors = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
        if processors:
            yield Machine(node["NodeID"], f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", processors)


def _first_line(error: Exception) -> str:
    return _lines(error)[0]


def _last_line(error: Exception) -> str:
    return _lines(error)[-1]


def _lines(error: Exception) -> list[str]:
    """Some text that is printable, whatever the error holds."""
    if isinstance(error, OpsmithError):
        return [str(error)]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines or [type(error).__name__]
