"""The process around a command-line agent: when the agent ends, or we do, nothing that it started goes on.

`python -I -S agent_watch.py LIFELINE FOLDER PROGRAM ARGS...`, in a session of its own. LIFELINE is the reading end of a
pipe whose other end we hold: at its end, however we ended, the agent is killed and FOLDER removed. Processes that left
the agent's group are found all the same where the system gives orphans to the nearest subreaper (Linux). It answers
with the agent's exit code, or 128 and the number of the signal, and imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

NOT_STARTED = 126  # as a shell says of a program that it cannot execute
_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # which Python ignores, and a child would too
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_CHUNK = 1 << 16


def watch_agent(lifeline: int, folder: str, command: Sequence[str]) -> int:
    """Run the command to its end, or to ours."""
    adopt_orphans()
    wakeup, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # with a handler, the wakeup is rung
    try:
        agent = os.posix_spawn(command[0], list(command), os.environ, setpgroup=0, setsigdef=_BY_PYTHON)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    code: int | None = None
    while code is None:
        ready, _, _ = select.select([lifeline, wakeup], [], [])
        if lifeline in ready:
            _kill_all(agent)
            shutil.rmtree(folder, ignore_errors=True)
            return 128 + signal.SIGKILL
        os.read(wakeup, _CHUNK)
        code = reap_children(agent)
    _kill_all(agent)
    return code if code >= 0 else 128 - code


def adopt_orphans() -> None:
    """From here on the orphans among our descendants are our children, where the system can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def reap_children(agent: int) -> int | None:
    """Bury who is dead; the agent's exit code (negative: a signal) once it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == agent:
                code = os.waitstatus_to_exitcode(ended[1])
    return code


def _kill_all(agent: int) -> None:
    """The agent's group, and whoever has become our child: killing one may give us the next."""
    with contextlib.suppress(OSError):
        os.killpg(agent, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            for child in _list_children():
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def _list_children() -> list[int]:
    """Ours as Linux tells them; elsewhere none is known beside the group."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    except OSError:
        return []
    return [int(number) for number in text.split()]


if __name__ == "__main__":
    sys.exit(watch_agent(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
