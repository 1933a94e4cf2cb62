"""Confined processes that try foreign code: our end, and theirs.

Each is a fork of a process that has torch loaded; it is confined before it reads the first request, answers requests of
one file, and is killed afterwards. What it does besides answering (a crash, a hang, a lie) costs that file its row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from opsmith.errors import UsageError
from opsmith.running.nursery import Nursery, Services, Worker
from opsmith.running.sandbox import Sandbox

LARGEST_ANSWER = 1 << 24  # bytes
MEMORY = 4 << 30  # bytes of one process
TRIALS = Services("opsmith.running.preload:load_torch", "", {"worker": "opsmith.imports.trial:serve_trials"})


class TrialError(Exception):
    """A worker gave no answer; `str(error)` says how it ended, in words for a row of a table."""


class ImportWorkers:
    """Starts confined processes for files of others, one at a time; a context manager.

    Raises UsageError, when the first is needed, where nothing isolates foreign code and it is not trusted.
    """

    def __init__(self, trust: bool = False, services: Services = TRIALS) -> None:
        self._nursery = Nursery(services)
        self._trust = trust

    def __enter__(self) -> ImportWorkers:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._nursery.close()

    def open_worker(self) -> ImportWorker:
        """A fresh process, for one file."""
        missing = self._nursery.missing
        if missing and not self._trust:
            expected = "expected a system that isolates it; try: --trust-tasks, if you know whose code it is"
            raise UsageError(f"import: foreign code would run with your rights: {missing}; {expected}")
        return ImportWorker(self._nursery, Sandbox(memory=MEMORY, isolate=not missing))


class ImportWorker:
    """One confined process; a context manager that ends it."""

    def __init__(self, nursery: Nursery, sandbox: Sandbox) -> None:
        self._nursery, self._sandbox = nursery, sandbox
        self._process: Worker | None = None

    def __enter__(self) -> ImportWorker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._end_process()

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Its answer. Raises TrialError, after which the next question starts a fresh process."""
        if self._process is None:
            self._process = self._nursery.fork_worker(self._sandbox)
        channel = self._process.channel
        try:
            channel.send(json.dumps(request).encode(), time.monotonic() + seconds)
            if not self._process.is_confined:
                channel.receive(LARGEST_ANSWER, time.monotonic() + seconds)
                self._process.is_confined = True
            answer = json.loads(channel.receive(LARGEST_ANSWER, time.monotonic() + seconds))
        except TimeoutError:
            self._end_process()
            raise TrialError(f"its code takes longer than {seconds:.0f} seconds") from None
        except (OSError, EOFError, ValueError, RecursionError):
            raise TrialError(f"the process that ran its code {self._end_process()}") from None
        if not isinstance(answer, dict):
            raise TrialError("the process that ran its code gave no answer")
        return answer

    def _end_process(self) -> str:
        process, self._process = self._process, None
        return self._nursery.kill(process) if process is not None else ""
