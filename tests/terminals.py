"""A terminal of a test's own: a command is started in it as a person would, seen, and left when it is closed."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

END_S = 60.0
hears_hangup = pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="this is under nohup")


class Terminal:
    """`python ARGUMENTS` as the leader of a terminal's session, on lines of 200 characters."""

    def __init__(self, folder: Path, *arguments: object, nohup: bool = False, **environment: str) -> None:
        self.shown = ""
        self._bytes = b""
        self._left = threading.Event()
        variables = os.environ | {"TERM": "xterm-256color", "COLUMNS": "200", "LINES": "50"} | environment
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            self._become(folder, list(map(str, arguments)), variables, nohup)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _become(self, folder: Path, arguments: list[str], variables: Mapping[str, str], nohup: bool) -> None:
        try:
            os.chdir(folder)
            signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
            os.execve(sys.executable, [sys.executable, *arguments], variables)
        finally:
            os._exit(127)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while not self._left.is_set():
                if select.select([self._master], [], [], 0.05)[0]:
                    self._bytes += os.read(self._master, 65536)
                    self.shown = self._bytes.decode(errors="replace")

    def wait_for(self, what: str | Callable[[], object]) -> None:
        """Until the words are shown, or the condition holds."""
        until = time.monotonic() + END_S
        while not (what in self.shown if isinstance(what, str) else what()):
            assert time.monotonic() < until, self.shown
            time.sleep(0.02)

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def close(self) -> None:
        """As a window is closed: the kernel tells the session, and whatever is written fails from now on."""
        self._left.set()
        self._reader.join()
        os.close(self._master)

    def code(self) -> int:
        """The exit code, once it has ended; -N where signal N ended it."""
        until = time.monotonic() + END_S
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.02)
        self._reader.join(1.0)  # what was shown last
        return os.waitstatus_to_exitcode(ended[1])


def shown_by(folder: Path, *arguments: object, **environment: str) -> str:
    """What `python ARGUMENTS` shows on a terminal until its end."""
    terminal = Terminal(folder, *arguments, **environment)
    terminal.code()
    return terminal.shown
