"""A model whose replies are kept in a file as they come: what was asked once is not asked, nor paid for, again.

The file is one that `replay:FILE` plays back. A line that a killed process left unfinished is cut off. What else takes
long is kept likewise, by a `KeptValues`.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from opsmith.errors import ProviderError, UsageError
from opsmith.models import ChatModel, Reply, Request
from opsmith.models.replay import ReplayModel, hash_request, record
from opsmith.records import Usage, dumps, to_json


class RecordingModel:
    """A chat model before which stands what it said earlier. Raises UsageError where another process writes the file.

    A reply is on disk before it is given out, so that whoever is killed asks again at most what was under way.
    """

    def __init__(self, model: ChatModel, path: Path) -> None:
        self.name, self.context_window, self.is_language_model = (
            model.name,
            model.context_window,
            model.is_language_model,
        )
        self._model = model
        self.usage = Usage()  # of the replies that were given out, in this process or before
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{path}: another process asks for the same; expected one; try: wait for it") from None
        if not path.exists():
            record(path, (), model=model.name, is_language_model=model.is_language_model)
        self._file = path.open("r+b")
        self._file.truncate(self._file.read().rfind(b"\n") + 1)
        self._file.seek(0, os.SEEK_END)
        self._past = ReplayModel(path)

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError."""
        try:
            reply = await self._past.complete(request)
        except ProviderError:
            reply = await self._model.complete(request)
            reply = reply if reply.texts else replace(reply, texts=("",))  # of which a recording holds one at least
            self._file.write(dumps({"key": hash_request(request), **to_json(reply)}).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self.usage += reply.usage
        return reply

    async def close(self) -> None:
        await self._model.close()
        self._file.close()
        self._lock.close()


OnProgress = Callable[[str], None]
Order = TypeVar("Order")
Found = TypeVar("Found")


class Inquiry:
    """Requests to one model until all are answered, the money is spent or the provider fails."""

    def __init__(self, model: RecordingModel, max_cost: float | None) -> None:
        self.model, self.stopped = model, ""  # why there are not more
        self._max_cost = max_cost

    async def ask(self, request: Request) -> Reply | None:
        """None: all was stopped. What is under way elsewhere is waited for."""
        if self._max_cost is not None and (self.model.usage.cost_usd or 0.0) >= self._max_cost:
            self.stopped = self.stopped or "max cost"
        if self.stopped:
            return None
        try:
            return await self.model.complete(request)
        except ProviderError as error:
            self.stopped = self.stopped or str(error)
            return None

    async def answer_all(
        self,
        orders: Sequence[Order],
        answer: Callable[[Order], Awaitable[Found | None]],
        concurrency: int,
        what: str,
        on_progress: OnProgress,
    ) -> list[Found]:
        """What `answer` makes of orders, so many at once, until it says None; then the model is closed."""
        waiting, results, began = iter(orders), list[Found](), time.monotonic()

        async def work() -> None:
            for order in waiting:
                found = await answer(order)
                if found is None:
                    return
                results.append(found)
                seconds = (time.monotonic() - began) * (len(orders) / len(results) - 1)
                if len(results) % max(1, len(orders) // 100) == 0:
                    on_progress(
                        f"{self.model.name}: {len(results)} of {len(orders)} {what}; about {seconds:.0f} s left"
                    )

        try:
            await asyncio.gather(*(work() for _ in range(concurrency)))
        finally:
            await self.model.close()
        return results


class KeptValues:
    """Values of JSON by key, each on disk before it is used; of a file that was cut off all whole lines count."""

    def __init__(self, path: Path) -> None:
        self._path, self._values = path, dict[str, Any]()
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        for line in lines:
            if line.endswith(b"\n") and line.strip():
                entry = json.loads(line)
                self._values[entry["key"]] = entry["value"]
        if lines and not lines[-1].endswith(b"\n"):  # what comes next begins a line of its own
            path.write_bytes(b"".join(lines[:-1]))

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def keep(self, key: str, value: Any) -> None:
        with self._path.open("ab") as file:
            file.write(dumps({"key": key, "value": value}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._values[key] = value
