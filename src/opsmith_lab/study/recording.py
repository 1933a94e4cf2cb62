"""A model whose replies are kept in a file as they come: what was asked once is not asked, nor paid for, again.

The file is one that `replay:FILE` plays back. A line that a killed process left unfinished is cut off.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

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
