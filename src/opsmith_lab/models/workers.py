"""Worker processes that answer JSON lines: for models that compute instead of asking a server.

The event loop stays free, and Ctrl-C and `kill -9` leave none behind (a worker ends with its stdin).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from typing import Any

from opsmith.environment import worker_environment
from opsmith.errors import ProviderError

LONGEST_LINE = 2**26  # bytes of one answer


class Workers:
    """`count` processes of `python -m ARGUMENTS`, started when first needed. One instance serves one event loop."""

    def __init__(self, model: str, arguments: list[str], count: int | None = None) -> None:
        self._model = model  # whose they are, for messages
        self._command = [sys.executable, "-P", "-m", *arguments]
        self._free = asyncio.Semaphore(count or os.cpu_count() or 1)
        self._idle: list[Process] = []
        self._all: list[Process] = []

    async def ask_worker(self, body: dict[str, Any]) -> dict[str, Any]:
        """A worker's answer. Where one dies, a new one is asked, once: an answer depends on nothing but the question.

        Raises ProviderError when that one dies as well, or none can be started.
        """
        async with self._free:
            process = self._idle.pop() if self._idle else await self._start_process()
            try:
                answer = await self._exchange_lines(process, body)
            except ProviderError:
                process = await self._start_process()
                answer = await self._exchange_lines(process, body)
            self._idle.append(process)  # a worker that was cancelled in mid-answer is never used again
            return answer

    async def close(self) -> None:
        """End the workers."""
        for process in self._all:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._all, self._idle = [], []

    async def _start_process(self) -> Process:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=worker_environment() | {"OMP_NUM_THREADS": "1"},
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderError(f"model {self._model!r}: no worker process can be started: {error}") from error
        self._all.append(process)
        return process

    async def _exchange_lines(self, process: Process, body: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(body).encode() + b"\n")
            await process.stdin.drain()
            answer: dict[str, Any] = json.loads(await process.stdout.readline())
        except (OSError, ValueError) as error:
            raise ProviderError(f"model {self._model!r}: a worker process died; try again", retryable=True) from error
        return answer
