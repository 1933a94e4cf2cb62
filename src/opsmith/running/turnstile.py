"""A turnstile for each device of this machine: who works there does so beside others, who measures is there alone.

Three files of the user's with kernel locks. Work holds `use`, shared, for as long as it lasts. Who wants the device
alone takes `lease`, which lets nobody else in, and has it once the work that was there is done. Work that finds it
taken says so in `waiting`, and nobody takes `lease` before all that waits there has been let in. So neither starves:
one stream of work does not keep a lease away, and between two leases everybody who waited works.

A lock ends with its holder, however that ends, or with the last process that was forked while it was held. Locks bind
those who ask: work of other users, and of containers with files of their own, is seen as noise only.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from opsmith.errors import OpsmithError
from opsmith.records import printable

CPU = "cpu"  # this machine's processor, where all that we start works
SYSTEM_FOLDER = Path("/run/user")
LONGEST_S = 600.0  # that work waits: whoever has a device for longer has forgotten it
_POLL_S = 0.05
_GLANCE_S = 0.2  # somebody who only looks or passes has a lock for less than that
_PATIENCE_S = 5.0  # that work waits before it is said
_NOTE_BYTES = 4096
_FRESH_S = 60.0  # that files stay open

_log = logging.getLogger("opsmith.devices")
_said = threading.Lock()  # taken for good by the thread that says that work waits


class OccupiedError(OpsmithError):
    """A device cannot be had alone; `note`: what its holder wrote of themselves, None: it is only worked on."""

    def __init__(self, device: str, note: bytes | None) -> None:
        super().__init__(f"{device}: somebody has it, or works on it")
        self.note = note


class _Entrance:
    """A thread's open files of one turnstile. They are opened anew now and then, as somebody may have removed them, and
    in a forked process, which would share their locks."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.lease = _open_file(place)
        self.use = _open_file(_name_use(place))
        self._process, self._opened = os.getpid(), time.monotonic()

    @property
    def is_stale(self) -> bool:
        return self._process != os.getpid() or time.monotonic() - self._opened > _FRESH_S

    def __del__(self) -> None:
        for name in ("lease", "use"):
            if name in vars(self):  # it could be opened
                os.close(vars(self)[name])


class _Places(threading.local):
    """The turnstiles of this thread; of those that it has passed, what it does within passes again without asking."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.entrances: dict[tuple[str, Path | None, str | None], _Entrance] = {}


_places = _Places()


@contextlib.contextmanager
def use_device(device: str = CPU, stop: threading.Event | None = None, folder: Path | None = None) -> Iterator[None]:
    """Work on `device` in the block, beside others; wait while somebody has it alone.

    It waits LONGEST_S at most, and no longer once `stop` is set, and works then all the same. Within a thread that uses
    the device, or has it alone, a second use is part of the first. Where no file can be locked nobody can have a device
    alone, and nothing is waited for.
    """
    entrance = None
    try:
        entrance = _find_entrance(device, folder)
        if entrance.place in _places.passed or not _enter_beside(device, entrance, stop):
            entrance = None
    except OSError as error:
        _log.debug("%s: no file can be locked: %s", device, error)
    if entrance is None:
        yield
        return
    _places.passed.add(entrance.place)
    try:
        yield
    finally:
        _places.passed.discard(entrance.place)
        fcntl.flock(entrance.use, fcntl.LOCK_UN)


@contextlib.contextmanager
def have_alone(device: str, note: bytes, seconds: float, folder: Path | None = None) -> Iterator[None]:
    """Have `device` alone for the block; wait so long for it. Raises OccupiedError, or OSError where no file can be
    locked. A thread that has it or uses it already waits for itself in vain."""
    deadline = time.monotonic() + max(seconds, _GLANCE_S)
    place = _find_place(device, folder)
    lease = _close_entrance(device, place, deadline)
    try:
        os.truncate(lease, 0)
        os.pwrite(lease, note[:_NOTE_BYTES], 0)
        use = _await_emptiness(device, place, deadline)
        _places.passed.add(place)
        try:
            yield
        finally:
            _places.passed.discard(place)
            _give_back(use)
    finally:
        os.truncate(lease, 0)
        _give_back(lease)


def read_note(device: str, folder: Path | None = None) -> bytes | None:
    """What the holder of a device wrote of themselves, or who waits for the end of work there; None: nobody is."""
    lease = _open_file(_find_place(device, folder))
    try:
        return None if _try_lock(lease, fcntl.LOCK_SH) else os.pread(lease, _NOTE_BYTES, 0)
    finally:
        _give_back(lease)


def find_runtime_folder() -> Path:
    """The user's on this machine: not one that several machines share. Raises OSError where it is another's."""
    own = SYSTEM_FOLDER / str(os.getuid())  # where it usually lies, though a service often lacks the variable
    for runtime in (os.environ.get("XDG_RUNTIME_DIR"), str(own)):
        if runtime and os.access(runtime, os.W_OK):
            return Path(runtime) / "opsmith"
    folder = Path(tempfile.gettempdir()) / f"opsmith-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to others, or others may write in it; try: set XDG_RUNTIME_DIR")
    return folder


# -- work


def _find_entrance(device: str, folder: Path | None) -> _Entrance:
    key = (device, folder, os.environ.get("XDG_RUNTIME_DIR"))
    entrance = _places.entrances.get(key)
    if entrance is None or (entrance.is_stale and entrance.place not in _places.passed):
        entrance = _places.entrances[key] = _Entrance(_find_place(device, folder))
    return entrance


def _enter_beside(device: str, entrance: _Entrance, stop: threading.Event | None) -> bool:
    """Whether `use` is held; else the wait is over."""
    lease, use = entrance.lease, entrance.use
    return _lock_through(lease, use) or _await_entrance(lease, use, device, entrance.place, stop)


def _lock_through(lease: int, use: int) -> bool:
    """Take `use` in a moment at which nobody has, or is about to have, the device alone; whether that was now."""
    if not _try_lock(lease, fcntl.LOCK_SH):
        return False
    is_entered = _try_lock(use, fcntl.LOCK_SH)
    fcntl.flock(lease, fcntl.LOCK_UN)
    return is_entered


def _await_entrance(lease: int, use: int, device: str, place: str, stop: threading.Event | None) -> bool:
    """Whether it was entered."""
    begin, stop = time.monotonic(), stop or threading.Event()
    waiting = _open_file(_name_waiting(place))
    try:
        while not _lock_through(lease, use):
            _try_lock(waiting, fcntl.LOCK_SH)
            waited = time.monotonic() - begin
            if waited >= _PATIENCE_S and _said.acquire(blocking=False):
                _log.warning("waiting: the %s is reserved for timing by %s", device, _read_words(lease))
            if waited >= LONGEST_S:
                _log.warning("going on after %.0f s: the %s stays reserved by %s", waited, device, _read_words(lease))
            if waited >= LONGEST_S or stop.wait(_POLL_S):
                return False
    finally:
        _give_back(waiting)
    return True


def _read_words(lease: int) -> str:
    first, _, _ = os.pread(lease, _NOTE_BYTES, 0).decode(errors="replace").partition("\n")
    return printable(first) or "another process"


# -- having it alone


def _close_entrance(device: str, place: str, deadline: float) -> int:
    """What holds `lease`, taken in a moment at which no work waited. Raises OccupiedError."""
    lease, waiting = _open_file(place), _open_file(_name_waiting(place))
    try:
        while not _lock_unless_waited(waiting, lease):
            if time.monotonic() >= deadline:
                raise OccupiedError(device, os.pread(lease, _NOTE_BYTES, 0))
            time.sleep(_POLL_S)
    except BaseException:
        os.close(lease)
        raise
    finally:
        os.close(waiting)
    return lease


def _lock_unless_waited(waiting: int, lease: int) -> bool:
    """Take `lease` if no work waits and nobody has it; whether that was so."""
    if not _try_lock(waiting, fcntl.LOCK_EX):
        return False
    is_taken = _try_lock(lease, fcntl.LOCK_EX)
    fcntl.flock(waiting, fcntl.LOCK_UN)
    return is_taken


def _await_emptiness(device: str, place: str, deadline: float) -> int:
    """What holds `use`, once all work that was there is done. Raises OccupiedError."""
    use = _open_file(_name_use(place))
    try:
        while not _try_lock(use, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise OccupiedError(device, None)
            time.sleep(_POLL_S)
    except BaseException:
        os.close(use)
        raise
    return use


# -- files


def _find_place(device: str, folder: Path | None) -> str:
    name = device if device.isalnum() else re.sub(r"[^\w.-]", "_", device)
    return f"{folder or find_runtime_folder()}/{name}.lease"


def _name_use(place: str) -> str:
    return place.removesuffix("lease") + "use"


def _name_waiting(place: str) -> str:
    return place.removesuffix("lease") + "waiting"


def _open_file(path: str) -> int:
    """A lock's file, made where it is missing; it is never removed, since somebody may wait for it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _try_lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _give_back(file: int) -> None:
    """Unlock for forked processes too, which share the lock, and close."""
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)
