"""The embedded model: a chat model that needs no key, no network and no weights. It is no language model.

What is built in is a target's program sampler (grammar, types, a cost prior); everything else it learns from the text
of one prompt, by `sampling`. Sampling is computing, so it runs in processes of its own: the event loop stays free, and
Ctrl-C and `kill -9` leave none behind (a worker ends with its stdin).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from typing import Any

from opsmith.agents.prompt import estimate_tokens
from opsmith.errors import ProviderError
from opsmith.models import Reply, Request
from opsmith.models.sampling import Session, answer
from opsmith.records import Usage
from opsmith.targets import Target, is_known_elsewhere

LONGEST_LINE = 2**26  # bytes of one answer


class EmbeddedModel:
    """`workers` processes, started when first needed. One instance serves one event loop."""

    name = "embedded"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, target: Target, noise: float = 0.0, workers: int | None = None) -> None:
        self._session = Session(target, noise)
        self._remote = is_known_elsewhere(target)  # else it is sampled in a thread of this process
        self._command = [sys.executable, "-P", "-m", "opsmith.models.sampling", target.name, str(noise)]
        self._free = asyncio.Semaphore(workers or os.cpu_count() or 1)
        self._idle: list[Process] = []
        self._all: list[Process] = []

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when a worker dies or cannot be started, or the prompt's task cannot be read."""
        seed = secrets.randbits(63) if request.seed is None else request.seed
        asked = {
            "messages": [(message.role, message.content) for message in request.messages],
            "temperature": request.temperature,
            "seed": seed,
            "n": request.n,
        }
        texts = _texts(await self._answer(asked))
        tokens = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, tokens, sum(map(estimate_tokens, texts)), 0, 0.0)
        return Reply(tuple(texts), usage, self.name, ("stop",) * len(texts))

    async def close(self) -> None:
        """End the workers."""
        for process in self._all:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._all, self._idle = [], []

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self._remote:
            return await asyncio.to_thread(answer, self._session, asked)
        async with self._free:
            process = self._idle.pop() if self._idle else await self._start()
            found = await self._ask(process, asked)
            self._idle.append(process)  # a worker that was cancelled in mid-answer is never used again
            return found

    async def _start(self) -> Process:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=environment,
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderError(f"model 'embedded': no worker process can be started: {error}") from error
        self._all.append(process)
        return process

    async def _ask(self, process: Process, asked: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            await process.stdin.drain()
            found: dict[str, Any] = json.loads(await process.stdout.readline())
        except (OSError, ValueError) as error:
            raise ProviderError("model 'embedded': a worker process died; try again", retryable=True) from error
        return found


def _texts(found: dict[str, Any]) -> list[str]:
    if "problem" in found:
        raise ProviderError(f"model 'embedded': {found['problem']}")
    return list(found["texts"])
