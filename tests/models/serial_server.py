"""A server of one's own on loopback, as small ones are: it answers one request after the other, slowly, and goes on with
what nobody waits for any more. It has a window, and counts tokens in its own way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from models.servers import Answer, Handler, OpenAIServer, refused

PER_ESTIMATE = 1.53  # tokens that it counts where four characters are one


class SerialServer(OpenAIServer):
    """`seconds` for each reply; `window`: in its own tokens, beyond which it refuses a request; None: it takes all."""

    def __init__(self, answer: Answer | Handler = "ok", seconds: float = 0.05, window: int | None = None) -> None:
        super().__init__(answer)
        self.seconds, self.window = seconds, window
        self.reset()

    def reset(self) -> None:
        """Forget what was."""
        self.requests.clear()
        self.generated = self.for_nobody = self.refused = 0
        self.most_waiting = self._waiting = 0

    async def _start(self) -> None:
        self._turn = asyncio.Lock()
        await super()._start()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.window is not None and count_prompt(body) + body["max_tokens"] > self.window:
            self.refused += 1
            return await self._fail(request, refused(f"the context window has {self.window} tokens"))
        self._waiting += 1
        self.most_waiting = max(self.most_waiting, self._waiting)
        async with self._turn:
            self.requests.append(body)
            await asyncio.sleep(self.seconds)
            self.generated += 1
            self.for_nobody += request.transport is None or request.transport.is_closing()
        self._waiting -= 1
        answer = self._answer(body) if callable(self._answer) else self._answer
        assert not isinstance(answer, Mapping)
        reply = self.reply(body, answer)
        reply["usage"] = {"prompt_tokens": count_prompt(body), "completion_tokens": 201 * body.get("n", 1)}
        return web.json_response(reply)


def count_prompt(body: Mapping[str, Any]) -> int:
    """The tokens of a request's messages, as the server counts them."""
    return int(PER_ESTIMATE * sum(len(message["content"]) / 4 for message in body["messages"]))
