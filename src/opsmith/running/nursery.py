"""Our end of the processes that `forks` starts: starting, asking and killing them. No policy."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from opsmith.environment import worker_environment
from opsmith.errors import VerifierError
from opsmith.records import Task, to_json
from opsmith.running.arena import Arena, open_arena
from opsmith.running.cgroups import Group, GroupLimits, give_back, take_group
from opsmith.running.channel import NUMBER, UNCONFINED, Channel
from opsmith.running.forks import SEAT
from opsmith.running.sandbox import Sandbox

_LARGEST_ANSWER = 1 << 26  # bytes; a longer one is no verdict
_START_S = 120.0  # for importing torch from a cold disk
_OURS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 26),  # glibc: freed memory up to this stays, which saves
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),  # thousands of page faults in a trial at `large`
    "TORCHINDUCTOR_CACHE_DIR": "/",  # any folder: torch's compiler, when imported, makes it unless it is there
}


@dataclass(frozen=True)
class Services:
    """What a nursery and its forks do, as texts `module:function`."""

    start: str  # called once, before the first fork
    language: str  # called with a target's name before the first fork that is asked for with it; "": none is
    kinds: Mapping[str, str]  # kind of process -> what serves its descriptors


@dataclass(eq=False)
class ForkSeat:
    """A fork of a nursery that forks processes itself, one at a time, within a group of its own."""

    pid: int
    control: socket.socket
    group: Group
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send_request(self, request: dict[str, Any], fds: Sequence[int] = ()) -> int | None:
        """One exchange with it; None when it is dead."""
        return _exchange(self.control, request, fds)

    def prepare(self, limits: GroupLimits) -> None:
        """Nothing of what was is counted any more. Raises OSError."""
        if limits != self.group.limits:
            self.group.set_limits(limits)
        self.group.mark_begin()


@dataclass
class Process:
    """Our end of one process of foreign code."""

    pid: int
    channel: Channel
    arena: Arena
    ended: str = ""  # how; "": it was not killed yet
    is_confined: bool = False  # it has said so
    is_released: bool = False  # what we share with it is let go of
    seat: ForkSeat | None = None  # where it was forked; None: by the nursery itself
    excess: str = ""  # once it has ended: the limit of its group that it met (`Group.find_excess`)
    is_shortage: bool = False  # it was ended for memory that others had taken

    def release_shared(self) -> None:
        """Let go of what we share with it."""
        self.channel.close()
        self.arena.unmap_memory()


@dataclass
class Worker(Process):
    """Our end of one worker."""

    known: set[str] = field(default_factory=set)  # digests of the tasks that were sent to it
    allowed: float = 0.0  # seconds, for the last answer

    def ask(self, what: str, task: Task, source: str, deadline: float, **arguments: Any) -> dict[str, Any]:
        """Its answer. Raises TimeoutError after `deadline` seconds, another error when it dies or talks nonsense."""
        self.send_request(what, task, source, deadline, **arguments)
        return self.receive_answer(deadline)

    def send_request(self, what: str, task: Task, source: str, deadline: float, **arguments: Any) -> None:
        """Ask without waiting for the answer, which must be received before anything else is asked."""
        digest = task.digest
        body = None if digest in self.known else to_json(task)
        request = {"what": what, "digest": digest, "task": body, "source": source, **arguments}
        self._send_message(request, deadline)
        self.known.add(digest)

    def tell(self, message: dict[str, Any], deadline: float) -> dict[str, Any]:
        """What it answers to a message. Raises like `ask`."""
        self._send_message(message, deadline)
        return self.receive_answer(deadline)

    def receive_answer(self, deadline: float) -> dict[str, Any]:
        """The answer to what was sent last. Raises like `ask`."""
        self.allowed = deadline
        answer: dict[str, Any] = json.loads(self.channel.receive(_LARGEST_ANSWER, time.monotonic() + deadline))
        return answer

    def _send_message(self, message: dict[str, Any], deadline: float) -> None:
        self.allowed = deadline
        self.channel.send(json.dumps(message).encode(), time.monotonic() + deadline)


class Nursery:
    """Our end of a nursery process; started at the first fork, and again should it die.

    `together`: what all its processes may use that are in no group of their own; None: each has its own limits alone.
    """

    def __init__(self, services: Services, together: GroupLimits | None = None) -> None:
        self._services = json.dumps(asdict(services))
        self._together = together
        self._group: Group | None = None
        self._seats: list[ForkSeat] = []  # all of this nursery's
        self._free: list[ForkSeat] = []  # those that nobody sits on
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._missing = ""
        self._is_ready = False
        self._closed = False

    @property
    def missing(self) -> str:
        """What the system lacks for isolation; "": nothing. Raises VerifierError when Python cannot be started."""
        with self._lock:
            self._await_nursery()
            return self._missing

    def start_early(self) -> None:
        """Start it without waiting for it, for a fork that is about to be asked for. Raises VerifierError."""
        with self._lock:
            if self._control is None:
                self._spawn_nursery()

    def fork_worker(self, sandbox: Sandbox, language: str = "") -> Worker:
        """A new worker for tasks of this target. Raises VerifierError when the pool is closed or Python cannot be
        started."""
        return Worker(*self._fork_process("worker", sandbox, language))

    def fork_candidate(
        self, sandbox: Sandbox, language: str, fds: Sequence[int] = (), together: GroupLimits | None = None
    ) -> Process:
        """A new process for a candidate's program, which gets `fds` as well. Raises VerifierError like the other.

        `together`: limits of the group that it is in, where one can be made.
        """
        seat = self._take_seat(language, together) if together is not None else None
        return Process(*self._fork_process("candidate", sandbox, language, fds, seat), seat=seat)

    def kill(self, process: Process) -> str:
        """Kill and reap; says how it had ended. A second call does nothing: the id may be another's by then."""
        self.end_process(process)
        if not process.is_released:
            process.is_released = True
            process.release_shared()
        return process.ended

    def end_process(self, process: Process) -> None:
        """Kill and reap one that another thread waits for: it reads that there is no answer, and lets go by `kill`."""
        seat = process.seat
        with self._lock if seat is None else seat.lock:
            if process.ended:
                return
            if seat is not None:
                status = seat.send_request({"kill": process.pid})
                process.excess, process.is_shortage = seat.group.find_excess(), seat.group.was_shortage()
            else:
                status = self._send_request({"kill": process.pid}) if self._control else None
            process.ended = _describe_end(status or 0, process.is_confined)
        if seat is not None:
            self._leave_seat(seat, status is not None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stop_nursery()

    def _fork_process(
        self, kind: str, sandbox: Sandbox, language: str, fds: Sequence[int] = (), seat: ForkSeat | None = None
    ) -> tuple[int, Channel, Arena]:
        ours, theirs = socket.socketpair()
        shared = open_arena()
        arena = Arena(os.dup(shared))
        request = {"fork": kind, "sandbox": asdict(sandbox), "language": language}
        try:
            passed = [theirs.fileno(), shared, *fds]
            if seat is not None:
                with theirs, seat.lock:
                    pid = seat.send_request(request, passed)
            else:
                with theirs, self._lock:
                    pid = self._send_request(request, passed)
                    if pid is None:  # it has died: one new one
                        pid = self._send_request(request, passed)
            if pid is None:
                raise VerifierError("verifier: the process that starts workers died twice; is there memory left?")
            return pid, Channel(ours), arena
        finally:
            os.close(shared)

    def _send_request(self, request: dict[str, Any], fds: Sequence[int] = ()) -> int | None:
        """One exchange with the nursery; None when it is dead."""
        answer = _exchange(self._await_nursery(), request, fds)
        if answer is None:
            self._stop_nursery()
        return answer

    def _take_seat(self, language: str, limits: GroupLimits) -> ForkSeat | None:
        """One that nobody sits on; None: no group can be made, or entered."""
        with self._lock:
            while self._free:
                seat = self._free.pop()
                with contextlib.suppress(OSError):
                    seat.prepare(limits)
                    return seat
            self._await_nursery()
            group = take_group(limits)
            if group is None:
                return None
            ours, theirs = socket.socketpair()
            request = {"fork": SEAT, "entries": group.entries, "language": language}
            with theirs:
                pid = self._send_request(request, [theirs.fileno()])
            if pid is None:
                ours.close()
                give_back(group)
                return None
            self._seats.append(ForkSeat(pid, ours, group))
            return self._seats[-1]

    def _leave_seat(self, seat: ForkSeat, is_alive: bool) -> None:
        with self._lock:
            if is_alive and seat in self._seats:
                self._free.append(seat)
            elif seat in self._seats:
                self._seats.remove(seat)
                self._send_request({"kill": seat.pid})
                _close_seat(seat)

    def _spawn_nursery(self) -> socket.socket:
        if self._closed:
            raise VerifierError("verifier: the pool of workers is closed")
        ours, theirs = socket.socketpair()
        with theirs:
            self._group = take_group(self._together) if self._together is not None else None
            entries = self._group.entries if self._group is not None else ()
            self._process = _start_process(theirs.fileno(), self._services, entries)
        self._control, self._is_ready = ours, False
        return ours

    def _await_nursery(self) -> socket.socket:
        """The control socket of one that is ready, started where there is none. Raises VerifierError."""
        control = self._control or self._spawn_nursery()
        if self._is_ready:
            return control
        try:
            self._missing = Channel(control).receive(_LARGEST_ANSWER, time.monotonic() + _START_S).decode()
        except (OSError, EOFError):
            last = self._read_last_words()
            message = f"verifier: no worker process can be started ({last}); try to install opsmith again"
            raise VerifierError(message) from None
        control.settimeout(None)
        self._is_ready = True
        return control

    def _read_last_words(self) -> str:
        """The last line of what a nursery said that could not start; it is gone afterwards."""
        assert self._process is not None
        assert self._control is not None
        self._process.kill()
        last = self._process.communicate()[1].decode(errors="replace").strip().rpartition("\n")[2]
        self._control.close()
        self._control = self._process = None
        return last

    def _stop_nursery(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            if not self._is_ready:  # it has no children yet, and would import to the end before it looks up
                self._process.kill()
            self._process.communicate()
        for seat in self._seats:
            _close_seat(seat)
        if self._group is not None:
            give_back(self._group)
        self._control = self._process = self._group = None
        self._seats, self._free = [], []


def _close_seat(seat: ForkSeat) -> None:
    seat.control.close()
    give_back(seat.group)


def _exchange(control: socket.socket, request: dict[str, Any], fds: Sequence[int]) -> int | None:
    """The answer to a request; None: nobody is there any more."""
    try:
        socket.send_fds(control, [json.dumps(request).encode()], fds)
        answer: int = NUMBER.unpack(control.recv(NUMBER.size))[0]
    except (OSError, struct.error):
        return None
    return answer


def _describe_end(status: int, is_confined: bool) -> str:
    """A wait status in words."""
    code = os.waitstatus_to_exitcode(status)
    if code == UNCONFINED and not is_confined:
        return "could not be confined"
    return f"was killed by {_name_signal(-code)}" if code < 0 else f"ended with status {code}"


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time one
        return f"signal {number}"


def _start_process(control: int, services: str, entries: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "opsmith.running.forks", str(control), services, *entries],
            env=worker_environment() | _OURS,
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which closes the pool
        )
    except OSError as error:
        raise VerifierError(f"verifier: no worker process can be started: {error}") from error
