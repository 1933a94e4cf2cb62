"""Model servers on loopback that speak the providers' real wire formats, count requests and fail on demand.

    with OpenAIServer("impl: ...") as server:                      # every completion is this text
        settings = Settings(model="openai/any", base_url=server.url)

The answer may also be a function of the request's JSON body that returns a text (repeated n times), a list of texts, a
whole body (a dict) or a `Fault`. `faults` are served first, one per request; None among them lets a request pass.
A server lives in a thread of its own: it serves the test's process, any event loop in it, and child processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from opsmith.models import Message


@dataclass(frozen=True)
class Fault:
    """An answer that is no reply; `delay_s` comes before it, `drop` closes the connection instead."""

    status: int = 200
    body: Any = None  # str or bytes are sent as they are, all else as JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False


RESET = Fault(drop=True)
INVALID_JSON = Fault(body='{"choices": [{"mess')
HTML = Fault(body="<html><body>502 from a proxy</body></html>", headers={"content-type": "text/html"})
SERVER_ERROR = Fault(500, {"error": {"message": "internal error", "type": "server_error"}})
OVERLOADED = Fault(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def read_messages(body: Mapping[str, Any]) -> list[Message]:
    """The prompt of a request in either protocol."""
    turns = [("system", body["system"])] if "system" in body else []
    turns += [(turn["role"], turn["content"]) for turn in body["messages"]]
    texts = [content if isinstance(content, str) else "".join(part["text"] for part in content) for _, content in turns]
    return [Message(role, text) for (role, _), text in zip(turns, texts, strict=True)]


def too_many(retry_after: str | None = None) -> Fault:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Fault(429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, headers)


def refused(message: str, parameter: str | None = None, status: int = 400) -> Fault:
    inner = {"message": message, "type": "invalid_request_error", "param": parameter, "code": None}
    return Fault(status, {"type": "error", "error": inner})


Answer = str | list[str | None] | dict[str, Any] | Fault
Handler = Callable[[dict[str, Any]], Answer]


class _Server:
    path = ""
    prefix = ""  # what a client's base URL ends in

    def __init__(self, answer: Answer | Handler = "ok", faults: Iterable[Fault | None] = ()) -> None:
        self._answer = answer
        self._faults = iter(faults)
        self.requests: list[dict[str, Any]] = []  # the JSON bodies, in the order of arrival
        self.headers: list[Mapping[str, str]] = []
        self.url = ""

    @property
    def count(self) -> int:
        return len(self.requests)

    def __enter__(self) -> _Server:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_post(self.path, self._serve)
        self.more_routes(app)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}{self.prefix}"

    def more_routes(self, app: web.Application) -> None:
        """Batch endpoints, in the servers that have them."""

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        answer = next(self._faults, None) or (self._answer(body) if callable(self._answer) else self._answer)
        if isinstance(answer, Fault):
            return await self._fail(request, answer)
        return web.json_response(answer if isinstance(answer, dict) else self.reply(body, answer))

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        await asyncio.sleep(fault.delay_s)
        if fault.drop and request.transport is not None:
            request.transport.abort()
        if isinstance(fault.body, (str, bytes)):
            data = fault.body.encode() if isinstance(fault.body, str) else fault.body
            headers = {"content-type": "application/json", **fault.headers}
            return web.Response(status=fault.status, body=data, headers=headers)
        return web.json_response(fault.body, status=fault.status, headers=fault.headers)

    def reply(self, body: dict[str, Any], answer: str | list[str | None]) -> dict[str, Any]:
        raise NotImplementedError


class OpenAIServer(_Server):
    """POST /v1/chat/completions: 100 prompt tokens, of them 60 cached, and 10 for each completion."""

    path = "/v1/chat/completions"
    prefix = "/v1"

    def reply(self, body: dict[str, Any], answer: str | list[str | None]) -> dict[str, Any]:
        texts = [answer] * body.get("n", 1) if isinstance(answer, str) else answer
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": f"{body['model']}-2024-11-20",
            "choices": [
                {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                for i, text in enumerate(texts)
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10 * len(texts),
                "total_tokens": 100 + 10 * len(texts),
                "prompt_tokens_details": {"cached_tokens": 60},
            },
        }


class AnthropicServer(_Server):
    """POST /v1/messages: 100 prompt tokens, of them 60 read from the cache and 30 written to it, 10 for the reply."""

    path = "/v1/messages"

    def reply(self, body: dict[str, Any], answer: str | list[str | None]) -> dict[str, Any]:
        texts = [answer] if isinstance(answer, str) else answer
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": f"{body['model']}-20250514",
            "content": [{"type": "text", "text": text} for text in texts],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 30,
                "output_tokens": 10,
            },
        }
