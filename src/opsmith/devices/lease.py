"""Leases: who has a device of this machine for itself. A file of the user's, locked by the kernel.

A lease ends with its holder, however that ends. Processes that the holder forked share its lock and keep it for as long
as they live, which is as it should be: they still disturb. Leases bind those who ask; they stop nobody else. Other
users of the machine have leases of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from opsmith.errors import OpsmithError

_POLL_S = 0.05
_GLANCE_S = 0.2  # somebody who only looks has the lock for less than that
_HOLDER_BYTES = 4096


class BusyError(OpsmithError):
    """Somebody else has the device; `holder` says who, where that is known."""

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
    """Have `device` (`cpu`, `cuda:0`) alone for the block; wait so long for it. Raises BusyError, or OSError where no
    file can be locked.

    A process that asks for what it has already is refused as another would be.
    """
    with _open_file(device, folder) as file:
        _lock_file(file, device, max(seconds, _GLANCE_S))
        holder = Holder(os.getpid(), purpose, time.time())
        _write_holder(file, holder)
        try:
            yield holder
        finally:
            file.truncate(0)
            fcntl.flock(file, fcntl.LOCK_UN)  # for forked processes too


def find_holder(device: str, folder: Path | None = None) -> Holder | None:
    """Who has the device now; None: nobody, or they are just taking it."""
    with _open_file(device, folder) as file:
        if _try_lock(file, fcntl.LOCK_SH):
            return None
        return _read_holder(file)


def wait_for_device(device: str, seconds: float, folder: Path | None = None) -> bool:
    """Wait until nobody has it, at most so long: for work that would disturb. Whether nobody has it."""
    deadline = time.monotonic() + seconds
    with _open_file(device, folder) as file:
        while not _try_lock(file, fcntl.LOCK_SH):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
    return True


def _lock_file(file: BinaryIO, device: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not _try_lock(file, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            holder = _read_holder(file)
            words = "another process" if holder is None else str(holder)
            raise BusyError(f"{device}: {words} has it; try: wait until it has ended", holder)
        time.sleep(_POLL_S)


def _try_lock(file: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_holder(file: BinaryIO, holder: Holder) -> None:
    file.truncate(0)
    file.seek(0)
    file.write(json.dumps(asdict(holder)).encode())


def _read_holder(file: BinaryIO) -> Holder | None:
    """None: they have not written it yet, or what is there is no holder."""
    file.seek(0)
    with contextlib.suppress(ValueError, TypeError, KeyError):
        data = json.loads(file.read(_HOLDER_BYTES))
        return Holder(int(data["pid"]), str(data["purpose"]), float(data["since"]))
    return None


def _open_file(device: str, folder: Path | None) -> BinaryIO:
    """The lock's file, made where it is missing; it is never removed, since somebody may wait for it."""
    place = folder or find_runtime_folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]", "_", device)
    descriptor = os.open(place / f"{name}.lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return open(descriptor, "r+b", buffering=0)


def find_runtime_folder() -> Path:
    """The user's on this machine: not one that several machines share. Raises OSError where it is another's."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "opsmith"
    folder = Path(tempfile.gettempdir()) / f"opsmith-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to others, or others may write in it; try: set XDG_RUNTIME_DIR")
    return folder
