"""What a process of foreign code uses, as the kernel tells us: for limits that the kernel itself does not keep."""

from __future__ import annotations

import contextlib
import os

_THREADS = 17  # the place in /proc/PID/stat, counted from behind the name


def measure_resident(pid: int) -> int:
    """Bytes of memory in use; 0 for a process that is gone."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def count_threads(pid: int) -> int:
    """Its threads, the first one too; 0 for a process that is gone, or where that cannot be asked."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[_THREADS])
    return 0
