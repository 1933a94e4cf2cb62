"""Real `opsmith` processes: started, watched, hit and waited for, each wait with an end of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

END_S = 120.0  # for anything that must end: ten times what it takes on two busy cores


def wait_until(what: Callable[[], object], seconds: float = END_S, why: Callable[[], str] = str) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not so within {seconds:.0f} s: {why()}"
        time.sleep(0.02)


@dataclass
class Command:
    """One process. What it says is in two files, which are read while it goes on."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    @property
    def said(self) -> str:
        """What it has told a person until now."""
        return self.err.read_text(encoding="utf-8", errors="replace")

    @property
    def printed(self) -> str:
        return self.out.read_text(encoding="utf-8", errors="replace")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, words: str, seconds: float = END_S) -> None:
        """Until it has said so."""
        wait_until(lambda: words in self.said or not self.alive, seconds, lambda: self.said)
        assert words in self.said, self.said

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> bool:
        """`kill -9`; whether there was anything left to kill."""
        was_alive = self.alive
        self.process.kill()
        self.process.wait(END_S)
        return was_alive

    def code(self, seconds: float = END_S) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(seconds)

    def result(self, seconds: float = END_S) -> dict[str, Any]:
        """What a run that was started with --json prints at its end."""
        assert self.code(seconds) == 0, self.said
        assert "Traceback" not in self.said
        return dict(json.loads(self.printed))


@dataclass
class Commands:
    """Starts `opsmith`; at the end whatever still runs is killed."""

    folder: Path
    started: list[Command] = field(default_factory=list)

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        for command in self.started:
            command.kill()

    def start(self, *arguments: object) -> Command:
        out, err = (self.folder / f"{len(self.started)}.{kind}" for kind in ("out", "err"))
        environment = os.environ | {"OPENAI_API_KEY": "sk-none", "ANTHROPIC_API_KEY": "sk-none"}
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "opsmith", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                cwd=self.folder,
            )
        self.started.append(Command(process, out, err))
        return self.started[-1]

    def run(self, where: object, *options: object) -> Command:
        """`opsmith run` on that store: a folder, a file or a URL."""
        place = ("--store", where) if "://" in str(where) else ("--out", where)
        return self.start("run", *place, "--json", "--no-report", *options)

    def finish(self, where: object, *options: object) -> dict[str, Any]:
        return self.run(where, *options).result()

    def killed(self, out: object, *options: object, times: int, seed: int, longest: float) -> int:
        """How many of so many starts of a run were alive when killed: one early, the others in the midst of a round."""
        rng, alive = random.Random(seed), 0
        for number in range(times):
            command = self.run(out, *options)
            if number:
                wait_until(lambda: "round" in command.said or not command.alive)  # noqa: B023  (asked in this turn)
            time.sleep(rng.uniform(0.0, longest))
            alive += command.kill()
        return alive


def children(pid: int) -> list[int]:
    """The processes that `pid` has started, from /proc; those that are dead and not yet reaped are none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return sorted(found)


def runs_module(pid: int, module: str) -> bool:
    """Whether it is a `python -m MODULE`."""
    try:
        return module in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
