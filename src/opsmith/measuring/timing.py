"""Our end of the confined processes in which programs are timed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.errors import OpsmithError
from opsmith.judging.candidate import BROKEN, READY
from opsmith.records import printable
from opsmith.running.arena import opened_files
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets.native.calls import DRIVER
from opsmith.targets.native.signature import FUNCTION
from opsmith.timing.engine import SIDES, SLOT_MEMORY, Side, TimingFault, TurnTimer
from opsmith.timing.inputs import SlotLayout

TIMED = Services(
    "opsmith.judging.preload:load_libraries",
    "opsmith.judging.preload:find_language",
    {"candidate": "opsmith.measuring.timed_process:serve_timed"},
)
_LARGEST_ANSWER = 4096  # bytes
_START_S = 30.0


class TimingError(OpsmithError, TimingFault):
    """A program could not be timed; the text says why."""


@dataclass(frozen=True)
class TimedArtefacts:
    """What is called, of which task, on which arrays."""

    language: str
    driver: bytes
    programs: Mapping[Side, bytes]
    layout: SlotLayout
    threads: int = 1


class TimedProcess(TurnTimer):
    """A confined process that has loaded the programs. A context manager."""

    def __init__(self, nursery: Nursery, sandbox: Sandbox, artefacts: TimedArtefacts, sides: Sequence[Side]) -> None:
        """`sides`: what is loaded, in this order. Raises TimingError, VerifierError."""
        files = {DRIVER: artefacts.driver, **{side.value: artefacts.programs[side] for side in sides}}
        with opened_files(files) as fds:
            self._process = nursery.fork_candidate(sandbox, artefacts.language, fds)
        self._nursery = nursery
        request = {
            "artefacts": list(files),
            "function": FUNCTION,
            "sides": SIDES,
            "places": artefacts.layout.places,
            "numbers": artefacts.layout.arrays.numbers,
            "threads": artefacts.threads,
        }
        answer = self.exchange_message(json.dumps(request).encode(), _START_S)
        if answer != READY:
            words = printable(answer.removeprefix(BROKEN).decode(errors="replace"))
            self.close()
            raise TimingError(f"the process in which programs are timed: {words}; expected one that is ready")
        self.memory = self._process.arena.view_blobs([SLOT_MEMORY])[0]
        super().__init__(self._process.pid, artefacts.threads, artefacts.layout.stride)

    def close(self) -> str:
        """End it; says how it had ended."""
        if hasattr(self, "memory"):
            self.memory.release()
        return self._nursery.kill(self._process)

    def exchange_message(self, message: bytes, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        channel = self._process.channel
        try:
            channel.send(message, end)
            return channel.receive(_LARGEST_ANSWER, end)
        except TimeoutError:
            raise TimingError(f"a turn had not ended after {seconds:g} s") from None
        except (OSError, EOFError, ValueError):
            raise TimingError(f"the process in which programs are timed {self.close()}") from None
