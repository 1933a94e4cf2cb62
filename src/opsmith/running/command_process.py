"""The process of one order: it confines itself, then runs the order's commands.

`python -m opsmith.running.command_process WORD...`, of which `ProcessOrder` is made. It leads a process group that
none of its descendants can leave. Commands that may start processes are run in turn until one fails; the one command of
an order that may not replaces this process. On its own descriptor, which no command inherits, it answers one line: the
exit codes and the processor time, that it is replaced, or why it could not be confined or replaced.

Every order waits for what this module imports: neither `json` nor `typing`, which would take as long as all the rest.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence

from opsmith.running import landlock, mounts, seccomp

ENDED, REPLACED, UNMOUNTED, UNCONFINED = "ended", "replaced", "unmounted", "unconfined"  # first words of an answer
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class ProcessOrder:
    """What one process does, with which limits."""

    def __init__(  # noqa: PLR0913  (each is one thing that a process may or may not)
        self,
        commands: Sequence[Sequence[str]],  # each an absolute program and its arguments
        environment: Mapping[str, str],  # all of it
        folder: str,  # where it works, and the only place that it may write to
        readable: Sequence[str],  # what it may read and execute
        limits: Mapping[str, int],  # of the operating system: name of RLIMIT_ -> amount
        ports: Sequence[int] = (),  # of TCP, which may be connected to: a licence server's
        *,
        report: int,  # the descriptor that is answered on
        files: int = -1,  # the descriptor of a file system that is put over the folder (`mounts`)
        start: int = -1,  # a descriptor that is read before anything is run: by then this process is in its group
        has_processes: bool = True,  # may they start others?
        executes_folder: bool = False,  # may they execute what lies in the folder?
        makes_folders: bool = False,  # may they make folders in it?
    ) -> None:
        self.commands, self.environment, self.folder, self.readable = commands, environment, folder, readable
        self.limits, self.ports, self.report, self.files, self.start = limits, ports, report, files, start
        self.has_processes, self.executes_folder, self.makes_folders = has_processes, executes_folder, makes_folders

    def write_words(self) -> list[str]:
        """As arguments of a process."""
        numbers = (self.report, self.files, self.start, self.has_processes, self.executes_folder, self.makes_folders)
        lists = (
            [f"{name}={text}" for name, text in self.environment.items()],
            [self.folder, *self.readable],
            [f"{name}={amount}" for name, amount in self.limits.items()],
            self.ports,
            *self.commands,
        )
        return [
            str(word) for words in (map(int, numbers), *((len(words), *words) for words in lists)) for word in words
        ]


def read_order(words: Sequence[str]) -> ProcessOrder:
    """What `write_words` wrote."""
    report, files, start, *flags = map(int, words[:6])
    lists, place = [], 6
    while place < len(words):
        end = place + 1 + int(words[place])
        lists.append(words[place + 1 : end])
        place = end
    variables, (folder, *readable), limits, ports, *commands = lists
    return ProcessOrder(
        commands,
        dict(word.split("=", 1) for word in variables),
        folder,
        readable,
        {name: int(amount) for name, amount in (word.split("=") for word in limits)},
        list(map(int, ports)),
        report=report,
        files=files,
        start=start,
        has_processes=bool(flags[0]),
        executes_folder=bool(flags[1]),
        makes_folders=bool(flags[2]),
    )


def run_order(order: ProcessOrder) -> str:
    """How it ended: the processor time and the exit codes of its commands, negative for signals; the last one may be of
    a failure."""
    try:
        if order.files >= 0:
            mounts.put_over(order.files, order.folder)
    except OSError as error:
        return f"{UNMOUNTED} {error}"
    try:
        _confine_commands(order)
        if not order.has_processes:
            _replace_process(order)
        codes = _run_in_turn(order)
    except (OSError, ValueError) as error:
        return f"{UNCONFINED} {error}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return " ".join([ENDED, str(used.ru_utime + used.ru_stime), *map(str, codes)])


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
    os.write(order.report, f"{REPLACED}\n".encode())
    os.execve(command[0], list(command), dict(order.environment))


if __name__ == "__main__":
    ORDER = read_order(sys.argv[1:])
    os.set_inheritable(ORDER.report, False)
    if ORDER.start < 0 or os.read(ORDER.start, 1):  # nothing: who ordered is gone
        if ORDER.start >= 0:
            os.close(ORDER.start)
        os.write(ORDER.report, run_order(ORDER).encode(errors="replace"))
