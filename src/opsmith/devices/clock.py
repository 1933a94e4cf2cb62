"""The trusted clock: the processor time that the kernel has counted for another process, read from outside it.

The process cannot change it. It is as coarse as the kernel's bookkeeping (microseconds) and holds all that the process
does, threads included, so that it says what a program cost and not how long somebody waited for it.
"""

from __future__ import annotations

import time

_PROCESS_CPU = 2  # CPUCLOCK_SCHED of <linux/posix-timers_types.h>: user and system time, to the nanosecond


def read_process_clock(pid: int) -> int | None:
    """Nanoseconds of processor time of all threads of a process; None: there is no such process.

    A process that has ended and was not waited for still has its clock.
    """
    if pid <= 0:
        raise ValueError(f"read_process_clock: given process {pid}; expected a positive number")
    try:
        return time.clock_gettime_ns((~pid << 3) | _PROCESS_CPU)
    except OSError:
        return None
