"""Models that compute instead of asking a server, in worker processes that answer JSON lines.

The event loop stays free, and Ctrl-C and `kill -9` leave none behind (a worker ends with its stdin).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any

from opsmith.environment import worker_environment
from opsmith.errors import OpsmithError, ProviderError, TargetError
from opsmith.models import ExhaustedError, Reply, Request
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Usage
from opsmith.targets import Target
from opsmith.targets.faults import find_fault
from opsmith.targets.lookup import is_known_elsewhere

LONGEST_LINE = 2**26  # bytes of one answer

Answer = Callable[[dict[str, Any]], dict[str, Any]]  # of a request's fields as JSON has them


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


class ProgramModel:
    """A chat model that is a program: `answer` in this process, or `python -m ARGUMENTS`, which does the same, in
    others that find the target by its name. One instance serves one event loop."""

    context_window: int | None = None
    is_language_model = False

    def __init__(
        self, name: str, target: Target, answer: Answer, arguments: Sequence[str], workers: int | None = None
    ) -> None:
        self.name = name
        self._answer = None if is_known_elsewhere(target) else answer
        self._workers = Workers(name, list(arguments), workers)

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when a worker dies, cannot be started or cannot read the prompt, TargetError where the
        code of its target fails, and ExhaustedError where there are no more programs."""
        body = {
            "messages": [(message.role, message.content) for message in request.messages],
            "temperature": request.temperature,
            "seed": secrets.randbits(63) if request.seed is None else request.seed,
            "n": request.n,
            "attempt": request.attempt,
        }
        answer = await self._answer_body(body)
        if "exhausted" in answer:
            raise ExhaustedError(f"model {self.name!r}: there is no program number {request.attempt} for this task")
        if "problem" in answer:
            kind = TargetError if answer.get("fault") else ProviderError
            raise kind(f"model {self.name!r}: {answer['problem']}")
        texts = tuple(answer["texts"])
        tokens = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, tokens, sum(map(estimate_tokens, texts)), 0, 0.0)
        return Reply(texts, usage, self.name, ("stop",) * len(texts))

    async def close(self) -> None:
        """End the workers."""
        await self._workers.close()

    async def _answer_body(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._answer is None:
            return await self._workers.ask_worker(body)
        await asyncio.sleep(0)  # not in a thread: CPython 3.11 cannot parse in two threads at once
        return answer_safely(self._answer, body)


def serve_lines(answer: Answer) -> None:
    """A worker's work: requests are answered until stdin ends."""
    for line in sys.stdin:
        print(json.dumps(answer_safely(answer, json.loads(line))), flush=True)


def answer_safely(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, or why there is none."""
    try:
        return answer(body)
    except OpsmithError as error:
        return {"problem": str(error)}
    except Exception as error:
        return {"problem": describe_fault(error), "fault": True}


def describe_fault(error: Exception) -> str:
    """What failed in the code of a target that is not built in; raises everything else."""
    fault = find_fault(error)
    if fault is None:
        raise error
    return str(fault)
