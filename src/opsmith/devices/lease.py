"""Leases: who has a device of this machine for itself, in words. The locks are the turnstile's (`running.turnstile`).

A lease ends with its holder, however that ends. Processes that the holder forked share its lock and keep it for as long
as they live, which is as it should be: they still disturb.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from opsmith.errors import OpsmithError
from opsmith.running.turnstile import OccupiedError, have_alone, read_note

WAIT_S = 300.0  # that a measurement waits for a lease: others, or the longest verdict


class BusyError(OpsmithError):
    """Somebody else has the device, or works on it; `holder` says who has it, where that is known."""

    def __init__(self, message: str, holder: Holder | None) -> None:
        super().__init__(message)
        self.holder = holder


@dataclass(frozen=True)
class Holder:
    """Who has a lease."""

    pid: int
    purpose: str  # in words: measure softmax
    since: float  # seconds of the epoch

    def __str__(self) -> str:
        return f"process {self.pid} ({self.purpose}), since {time.strftime('%H:%M:%S', time.localtime(self.since))}"


@contextlib.contextmanager
def lease_device(device: str, purpose: str, seconds: float = 0.0, folder: Path | None = None) -> Iterator[Holder]:
    """Have `device` (`cpu`, `cuda:0`) alone for the block: no other lease, and none of our work; wait so long for it.

    Raises BusyError, or OSError where no file can be locked. A process that asks for what it has already is refused as
    another would be. What the block needs of others' work (verdicts, builds) is done before it: they would wait for it.
    """
    holder = Holder(os.getpid(), purpose, time.time())
    note = f"{holder}\n{json.dumps(asdict(holder))}".encode()  # a line for people, and one for us
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(have_alone(device, note, seconds, folder))
        except OccupiedError as error:
            raise _explain_refusal(device, error, seconds) from None
        yield holder


def find_holder(device: str, folder: Path | None = None) -> Holder | None:
    """Who has the device now, or waits for work there to end; None: nobody, or they are just taking it."""
    note = read_note(device, folder)
    return None if note is None else _read_holder(note)


def _explain_refusal(device: str, error: OccupiedError, seconds: float) -> BusyError:
    if error.note is None:
        return BusyError(f"{device}: there was work for {seconds:g} s; try: wait until it has ended", None)
    holder = _read_holder(error.note)
    words = "another process" if holder is None else str(holder)
    return BusyError(f"{device}: {words} has it; try: wait until it has ended", holder)


def _read_holder(note: bytes) -> Holder | None:
    """None: what they wrote is no holder, or not all of it is there yet."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        data = json.loads(note.rpartition(b"\n")[2])
        return Holder(int(data["pid"]), str(data["purpose"]), float(data["since"]))
    return None
