"""The machines of a cluster that take part.

Each has one member (`member`): an actor that is pinned to it and claims the processors that it works with. Machines
join, die and are preempted; one that would not compute the same, or may not judge the run's tasks, takes no part, and
that is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from opsmith.executors.cluster import PROCESSOR, RESOURCE
from opsmith.executors.member import ClusterMember
from opsmith.executors.versions import describe_differences, list_versions
from opsmith.executors.wire import unpack_message

STARTS = 3  # of a member that fails to start, before its machine is given up

_log = logging.getLogger("opsmith.ray")


@dataclass(frozen=True)
class ClusterMachine:
    """One machine of the cluster."""

    id: str
    name: str
    processors: int
    devices: frozenset[str] = frozenset()  # that it was started with as resources: cpu, cuda:0


@dataclass(eq=False)
class Seat:
    """Our end of one member."""

    machine: ClusterMachine
    room: int  # processors that it claims
    actor: Any = None  # Ray's handle
    load: int = 0  # pieces of work in hand
    devices: Mapping[str, str] = field(default_factory=dict)  # digests by name, as the member says

    def find_device(self, kind: str) -> str | None:
        """The first of a kind (cpu, cuda); None: it has none."""
        return next((name for name in sorted(self.devices) if name.partition(":")[0] == kind), None)


class Roster:
    """The members of the cluster that `ray` has joined. One instance serves one event loop."""

    def __init__(self, ray: ModuleType, order: bytes, workers: int) -> None:
        self.seats: list[Seat] = []
        self.starting: dict[ClusterMachine, asyncio.Task[None]] = {}
        self.refused: dict[str, str] = {}  # by a machine's id: why
        self._failed: dict[str, int] = {}  # by a machine's id: starts
        self._ray, self._order, self._workers = ray, order, workers
        self._versions = list_versions({task["target"] for task in unpack_message(order)["tasks"]})

    async def refresh_members(self) -> list[ClusterMachine]:
        """The machines that are there now; a member is being started on each that has none and may have one."""
        machines = list(_list_machines(await asyncio.to_thread(self._ray.nodes)))
        there = {machine.id for machine in machines}
        for seat in [seat for seat in self.seats if seat.machine.id not in there]:
            self.lose_member(seat, "it has left the cluster")
        for machine in [machine for machine in self.starting if machine.id not in there]:
            self.starting.pop(machine).cancel()
        busy = {seat.machine.id for seat in self.seats} | {machine.id for machine in self.starting}
        for machine in machines:
            if machine.id not in busy and machine.id not in self.refused:
                self.starting[machine] = asyncio.create_task(self._start_member(machine))
        return machines

    def lose_member(self, seat: Seat, why: str) -> None:
        """Take a member out; should its machine be there still, the next look gives it a new one."""
        if seat in self.seats:
            self.seats.remove(seat)
            _log.warning("machine %s was lost: its work is given to others (%s)", seat.machine.name, why)
        self._kill_actor(seat)

    def end_members(self) -> None:
        """Give all processors back."""
        for seat in self.seats:
            self._kill_actor(seat)

    async def ask_member(self, seat: Seat, what: str, message: bytes, kind: str = PROCESSOR) -> dict[str, Any]:
        """The answer of a member's method; who measures does it on a device of that kind. Raises what Ray raises,
        ValueError."""
        seat.load += 1
        try:
            device = seat.find_device(kind)
            if what == "measure" and device in seat.machine.devices:
                return unpack_message(await self._measure_alone(seat, message, f"{RESOURCE}{device}"))
            return unpack_message(await getattr(seat.actor, what).remote(message))
        finally:
            seat.load -= 1

    async def _measure_alone(self, seat: Seat, message: bytes, resource: str) -> bytes:
        """What a member measures while it has the device of its machine, among all runs on the cluster."""
        options = {"num_cpus": 0, "resources": {resource: 1}, "max_retries": 0}
        holding = self._ray.remote(_await_measuring).options(**options, scheduling_strategy=_pin_to(seat.machine))
        answer: bytes = await holding.remote(seat.actor, message)
        return answer

    async def _start_member(self, machine: ClusterMachine) -> None:
        seat = Seat(machine, min(machine.processors, self._workers))
        try:
            problem = await self._begin_member(seat)
        except (self._ray.exceptions.RayError, ValueError, LookupError, TypeError) as error:
            starts = self._failed[machine.id] = self._failed.get(machine.id, 0) + 1
            problem = f"no member starts there: {list_lines(error)[-1]}" if starts >= STARTS else ""
            self._kill_actor(seat)
        else:
            if problem:
                self._kill_actor(seat)
            else:
                self.seats.append(seat)
        finally:
            self.starting.pop(machine, None)
        if problem:
            self.refused[machine.id] = f"machine {machine.name} takes no part: {problem}"
            _log.warning("%s", self.refused[machine.id])

    async def _begin_member(self, seat: Seat) -> str:
        """Start a member; returns why it takes no part ("": it does)."""
        try:
            options = {"num_cpus": seat.room, "scheduling_strategy": _pin_to(seat.machine), "max_restarts": 0}
            seat.actor = self._ray.remote(ClusterMember).options(**options).remote(self._order, seat.room)
            answer = unpack_message(await seat.actor.begin.remote())["found"]
            seat.devices = {str(name): str(digest) for name, digest in dict(answer.get("devices", {})).items()}
        except asyncio.CancelledError:
            self._kill_actor(seat)
            raise
        return _describe_difference(describe_differences(self._versions, answer["versions"])) or str(answer["problem"])

    def _kill_actor(self, seat: Seat) -> None:
        if seat.actor is not None:
            with contextlib.suppress(Exception):  # it is gone, or the whole cluster
                self._ray.kill(seat.actor)


def _pin_to(machine: ClusterMachine) -> Any:
    """Ray's word for "there and nowhere else"."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  (with `ray`)

    return NodeAffinitySchedulingStrategy(machine.id, soft=False)


def _await_measuring(member: Any, message: bytes) -> Any:
    """What a member measures; as a task of Ray's, which holds a resource as long as that takes."""
    import ray  # noqa: PLC0415  (an extra, and slow to import)

    return ray.get(member.measure.remote(message))


def _list_machines(nodes: list[Mapping[str, Any]]) -> Iterator[ClusterMachine]:
    """Those that are alive and have a processor to give; a head often has none."""
    for node in nodes:
        processors = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
        if processors:
            name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
            resources = {key for key, amount in node["Resources"].items() if key.startswith(RESOURCE) and amount >= 1}
            devices = frozenset(key.removeprefix(RESOURCE) for key in resources)
            yield ClusterMachine(node["NodeID"], name, processors, devices)


def _describe_difference(difference: str) -> str:
    return (
        difference and f"it has {difference}; expected the same, since results must be; try: install there what is here"
    )


def list_lines(error: Exception) -> list[str]:
    """An error's text without blank lines; never empty."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
