"""Our end of processes in which programs are timed, and the time of one turn by two clocks.

One thread: the process reads its processor time, and so do we, outside. Several: both read the clock on the wall, since
threads that wait for each other spin; between turns the process is stopped, so that none works on unseen.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.devices.clock import read_process_clock
from opsmith.errors import OpsmithError
from opsmith.judging.candidate import BROKEN, READY
from opsmith.measuring.schedule import Side
from opsmith.measuring.slots import SlotLayout
from opsmith.measuring.timed_process import PLACE
from opsmith.records import printable
from opsmith.running.arena import CAPACITY, opened_files
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets.native.driver import DRIVER

TIMED = Services(
    "opsmith.judging.preload:load_libraries",
    "opsmith.judging.preload:find_language",
    {"candidate": "opsmith.measuring.timed_process:serve_timed"},
)
SIDES = (Side.PROGRAM, Side.PARTNER)
_LARGEST_ANSWER = 4096  # bytes
_START_S, _TURN_S = 30.0, 30.0


class TimingError(OpsmithError):
    """A program could not be timed; the text says why."""


@dataclass(frozen=True)
class TimedArtefacts:
    """What is called, of which task, on which arrays."""

    language: str
    driver: bytes
    programs: Mapping[Side, bytes]
    layout: SlotLayout
    threads: int = 1

    def take_side(self, side: Side) -> TimedArtefacts:
        """The same with one program alone."""
        return TimedArtefacts(self.language, self.driver, {side: self.programs[side]}, self.layout, self.threads)


class TimedProcess:
    """A confined process that has loaded the programs. A context manager."""

    def __init__(self, nursery: Nursery, sandbox: Sandbox, artefacts: TimedArtefacts, is_reversed: bool) -> None:
        """`is_reversed`: the partner is loaded first. Raises TimingError, VerifierError."""
        sides = artefacts.programs if not is_reversed else reversed([*artefacts.programs])
        files = {DRIVER: artefacts.driver, **{side.value: artefacts.programs[side] for side in sides}}
        with opened_files(files) as fds:
            self._process = nursery.fork_candidate(sandbox, artefacts.language, fds)
        self._nursery = nursery
        request = {
            "artefacts": list(files),
            "sides": SIDES,
            "places": artefacts.layout.places,
            "numbers": artefacts.layout.arrays.numbers,
            "threads": artefacts.threads,
        }
        answer = self._exchange(json.dumps(request).encode(), _START_S)
        if answer != READY:
            words = printable(answer.removeprefix(BROKEN).decode(errors="replace"))
            self.close()
            raise TimingError(f"the process in which programs are timed: {words}; expected one that is ready")
        self._has_threads = artefacts.threads > 1
        self._stride = artefacts.layout.stride
        self.memory = self._process.arena.view_blobs([CAPACITY])[0]
        self._counted = self._read_clock()
        self._waited = 0  # for the last turn
        self._send_signal(signal.SIGSTOP)

    def time_turn(self, side: Side, slots: Sequence[int]) -> int:
        """Nanoseconds by the clock that the process reads. Raises TimingError."""
        message = struct.pack(f"<{len(slots) + 1}q", SIDES.index(side), *(slot * self._stride for slot in slots))
        self._send_signal(signal.SIGCONT)
        begin = time.monotonic_ns()
        answer = self._exchange(message, _TURN_S)
        self._waited = time.monotonic_ns() - begin
        self._send_signal(signal.SIGSTOP)
        if len(answer) != PLACE.size:
            raise TimingError("the process in which programs are timed answers something that is no time")
        elapsed: int = PLACE.unpack(answer)[0]
        return elapsed

    def count_time(self) -> int:
        """Nanoseconds of the last turn by our clock. One thread: what the kernel has counted for the process since we
        last asked, so that all it did is in it, between turns too. Several: how long we waited for its answer."""
        if self._has_threads:
            return self._waited
        before, self._counted = self._counted, self._read_clock()
        return self._counted - before

    def close(self) -> str:
        """End it; says how it had ended."""
        if hasattr(self, "memory"):
            self.memory.release()
        return self._nursery.kill(self._process)

    def __enter__(self) -> TimedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_signal(self, number: signal.Signals) -> None:
        """To a process with threads; its id is its own until the nursery reaps it."""
        if self._has_threads:
            os.kill(self._process.pid, number)

    def _read_clock(self) -> int:
        counted = read_process_clock(self._process.pid)
        if counted is None:
            raise TimingError("the process in which programs are timed has gone")
        return counted

    def _exchange(self, message: bytes, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        channel = self._process.channel
        try:
            channel.send(message, end)
            return channel.receive(_LARGEST_ANSWER, end)
        except TimeoutError:
            raise TimingError(f"a turn had not ended after {seconds:g} s") from None
        except (OSError, EOFError, ValueError):
            raise TimingError(f"the process in which programs are timed {self.close()}") from None
