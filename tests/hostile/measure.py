"""What does a call cost, in seconds and in the memory of the processes that do it? Read from outside (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from clocks import stretch_bound

T = TypeVar("T")

MAX_SECONDS = 6.0  # stretched on a slow machine; the longest takes 1.3 s
MAX_BYTES = 256 * 2**20  # above what the process held before


@dataclass(frozen=True)
class Cost(Generic[T]):
    """An answer and what it took: seconds of the caller, and the most memory above what the processes held before."""

    answer: T
    seconds: float
    extra_bytes: int

    def is_quick(self) -> bool:
        return self.seconds <= stretch_bound(MAX_SECONDS)

    def is_small(self) -> bool:
        return self.is_quick() and self.extra_bytes <= MAX_BYTES


def cost_of(call: Callable[[], T], pids: set[int]) -> Cost[T]:
    """The answer of a call during which none of the processes may end."""
    held = {pid: _reset_peak(pid) for pid in pids}
    start = time.perf_counter()
    answer = call()
    seconds = time.perf_counter() - start
    extra = max(_kibibytes(pid, "VmHWM") - before for pid, before in held.items())
    return Cost(answer, seconds, extra * 1024)


def worker_pids() -> set[int]:
    """The processes below the nursery, which is a child of this process, as others (a database server) may be."""
    parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    nurseries = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_nursery(pid)}
    return {pid for pid, parent in parents.items() if parent in nurseries}


def _is_nursery(pid: int) -> bool:
    return b"opsmith.running.forks" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it ended meanwhile
        return 0


def _reset_peak(pid: int) -> int:
    """KiB held now. Where the kernel does not let us reset the peak, it is the highest so far that must not grow."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except PermissionError:
        return _kibibytes(pid, "VmHWM")
    return _kibibytes(pid, "VmRSS")


def _kibibytes(pid: int, name: str) -> int:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(name))
