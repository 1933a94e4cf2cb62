"""A shell that is kept from command to command, as a reader's is: folders, variables and background jobs stay."""

import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

LONGEST_S = 300  # of one command


class Shell:
    """bash in a folder of its own, with this Python's commands first and no key in the environment."""

    def __init__(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
        mine = {"PATH": path, "HOME": str(folder), "COLUMNS": "120", "PYTHONUNBUFFERED": "1", "TERM": "dumb"}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=kept | mine,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the shell and what it left running."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._process.communicate()

    def run(self, command: str) -> tuple[str, int]:
        """What a command prints on both streams, and its exit code."""
        assert self._process.stdin is not None
        mark = secrets.token_hex(8)
        self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{mark} %s\\n' $?\n")
        self._process.stdin.flush()
        timer = threading.Timer(LONGEST_S, os.killpg, (self._process.pid, signal.SIGKILL))
        timer.start()
        try:
            return self._read(mark)
        finally:
            timer.cancel()

    def _read(self, mark: str) -> tuple[str, int]:
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(mark):
                return "".join(lines), int(line.split()[1])
            lines.append(line)
        raise AssertionError("the shell ended:\n" + "".join(lines))
