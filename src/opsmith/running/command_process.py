"""The process of one order: it confines itself, then runs the order's commands.

`python -m opsmith.running.command_process REQUEST`, where REQUEST is JSON of `ProcessOrder`. It leads a process group
that none of its descendants can leave. Commands that may start processes are run in turn until one fails; the one
command of an order that may not replaces this process. On its own descriptor, which no command inherits, it answers one
JSON text: the exit codes and the processor time, that it is replaced, or why it could not be confined or replaced.
Every order waits for what this module imports, so that it imports little.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opsmith.running import landlock, mounts, seccomp

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class ProcessOrder(NamedTuple):
    """What one process does, with which limits."""

    commands: Sequence[Sequence[str]]  # each an absolute program and its arguments
    environment: Mapping[str, str]  # all of it
    folder: str  # where it works, and the only place that it may write to
    readable: Sequence[str]  # what it may read and execute
    limits: Mapping[str, int]  # of the operating system: name of RLIMIT_ -> amount
    report: int  # the descriptor that is answered on
    has_processes: bool = True  # may they start others?
    executes_folder: bool = False  # may they execute what lies in the folder?
    makes_folders: bool = False  # may they make folders in it?
    ports: Sequence[int] = ()  # of TCP, which may be connected to: a licence server's
    files: int = -1  # the descriptor of a file system that is put over the folder (`mounts`)
    start: int = -1  # a descriptor that is read before anything is run: by then this process is in its group


def run_order(order: ProcessOrder) -> dict[str, object]:
    """The exit codes of its commands, negative for signals; the last one may be of a failure."""
    try:
        if order.files >= 0:
            mounts.put_over(order.files, order.folder)
    except OSError as error:
        return {"unmounted": str(error)}
    try:
        _confine_commands(order)
        if not order.has_processes:
            _replace_process(order)
        codes = _run_in_turn(order)
    except (OSError, ValueError) as error:
        return {"unconfined": str(error)}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"codes": codes, "cpu_seconds": used.ru_utime + used.ru_stime}


def _confine_commands(order: ProcessOrder) -> None:
    """Raises OSError, or ValueError for a limit above the hard one."""
    for name, amount in order.limits.items():
        limit = getattr(resource, name)
        hard = resource.getrlimit(limit)[1]
        # the hard one is just above the soft one, so that a process is told (SIGXCPU) before it is killed
        ceiling = amount + 1 if hard == resource.RLIM_INFINITY else min(amount + 1, hard)
        resource.setrlimit(limit, (min(amount, ceiling), ceiling))
    seccomp.die_with_parent()
    seccomp.prefer_ending()
    seccomp.give_up_privileges()
    landlock.restrict_commands(order.readable, order.folder, order.executes_folder, order.makes_folders, order.ports)
    seccomp.install_commands_filter(order.has_processes, bool(order.ports))


def _run_in_turn(order: ProcessOrder) -> list[int]:
    codes: list[int] = []
    for command in order.commands:
        pid = os.posix_spawn(command[0], list(command), dict(order.environment), setsigdef=_IGNORED_BY_PYTHON)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        if codes[-1]:
            break
    return codes


def _replace_process(order: ProcessOrder) -> None:
    """Become the command. Raises OSError where that fails, which the report then says too."""
    (command,) = order.commands
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.write(order.report, b'{"replaced": true}\n')
    os.execve(command[0], list(command), dict(order.environment))


if __name__ == "__main__":
    ORDER = ProcessOrder(**json.loads(sys.argv[1]))
    os.set_inheritable(ORDER.report, False)
    if ORDER.start < 0 or os.read(ORDER.start, 1):  # nothing: who ordered is gone
        if ORDER.start >= 0:
            os.close(ORDER.start)
        os.write(ORDER.report, json.dumps(run_order(ORDER)).encode())
