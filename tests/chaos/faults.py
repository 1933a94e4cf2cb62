"""What can a provider do instead of answering? `FAULTS[name]` sends it, on one request, to a real client.

Each is given the request and the JSON of the reply that it would have been; none of them lets the client have that
reply whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from typing import Any

from aiohttp import web

Send = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]

JSON = {"content-type": "application/json"}
ERROR = {"type": "error", "error": {"type": "api_error", "message": "the server failed"}}
SKEW_S = 3 * 3600.0  # how wrong a provider's clock is
PIECE = b" " * 2**16
MOST_ENDLESS = 2**30  # bytes after which an endless body ends all the same, so that no test fills the memory


def stated(
    status: int, body: Any = ERROR, headers: Mapping[str, str] | None = None, clock: float | None = None
) -> Send:
    """An answer of that status. `clock`: its retry-after is a date, one second after a clock that is so far ahead."""

    async def send(request: web.Request, reply: bytes) -> web.StreamResponse:
        sent = {**JSON, **(headers or {})}
        if clock is not None:
            now = time.time() + clock
            sent |= {"date": formatdate(now, usegmt=True), "retry-after": formatdate(now + 1, usegmt=True)}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=data, headers=sent)

    return send


def _cut(request: web.Request) -> None:
    """Close the connection under the client: it sees a reset."""
    if request.transport is not None:
        request.transport.abort()


async def reset(request: web.Request, reply: bytes) -> web.StreamResponse:
    _cut(request)
    return web.Response()


async def _half(request: web.Request, reply: bytes, *, chunked: bool) -> web.StreamResponse:
    """The head and the first half of the body are on their way to the client."""
    response = web.StreamResponse(headers=JSON if chunked else {**JSON, "content-length": str(len(reply))})
    if chunked:
        response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(reply[: len(reply) // 2])
    return response


async def reset_in_the_body(request: web.Request, reply: bytes) -> web.StreamResponse:
    response = await _half(request, reply, chunked=False)
    await asyncio.sleep(0.01)
    _cut(request)
    return response


async def half_a_body(request: web.Request, reply: bytes) -> web.StreamResponse:
    """The connection is closed in good order, too early."""
    response = await _half(request, reply, chunked=False)
    if request.transport is not None:
        request.transport.close()
    return response


async def chunks_without_an_end(request: web.Request, reply: bytes) -> web.StreamResponse:
    response = await _half(request, reply, chunked=True)
    if request.transport is not None:
        request.transport.close()
    return response


async def silence(request: web.Request, reply: bytes) -> web.StreamResponse:
    """Nothing at all, until the client gives up."""
    await asyncio.sleep(3600)
    return web.Response()


async def drip(request: web.Request, reply: bytes) -> web.StreamResponse:
    """A byte every now and then: never silent for long, never done."""
    response = web.StreamResponse(headers={**JSON, "content-length": str(len(reply))})
    await response.prepare(request)
    for at in range(len(reply) - 1):
        await response.write(reply[at : at + 1])
        await asyncio.sleep(0.3)
    _cut(request)
    return response


async def endless(request: web.Request, reply: bytes) -> web.StreamResponse:
    """JSON may begin with any number of spaces, and this one does."""
    response = web.StreamResponse(headers=JSON)
    response.enable_chunked_encoding()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        for _ in range(MOST_ENDLESS // len(PIECE)):
            await response.write(PIECE)
    _cut(request)
    return response


async def cut_json(request: web.Request, reply: bytes) -> web.StreamResponse:
    return web.Response(body=reply[: len(reply) // 2], headers=JSON)


HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1>nginx</body></html>"
PAGE = {"content-type": "text/html; charset=utf-8"}
UNKNOWN_SHAPE = {"result": "I am another API", "choices": {"message": 3}, "content": "text"}

REFUSALS: dict[str, Send] = {
    "408": stated(408),
    "409": stated(409),
    "429": stated(429),
    "429 with seconds": stated(429, headers={"retry-after": "0.2"}),
    "429 with a date": stated(429, clock=0.0),
    "429 with a date, the clock fast": stated(429, clock=SKEW_S),
    "429 with a date, the clock slow": stated(429, clock=-SKEW_S),
    "429 with nonsense": stated(429, headers={"retry-after": "soon"}),
    "500": stated(500),
    "500 without words": stated(500, b""),
    "502 of a proxy": stated(502, HTML, PAGE),
    "503": stated(503, headers={"retry-after": "0"}),
    "529": stated(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
}
BROKEN: dict[str, Send] = {
    "reset": reset,
    "reset in the body": reset_in_the_body,
    "half a body": half_a_body,
    "chunks without an end": chunks_without_an_end,
    "cut JSON": cut_json,
    "no JSON": stated(200, b"\xff\xfe\x00 not text"),
    "another shape": stated(200, UNKNOWN_SHAPE),
    "a list": stated(200, []),
    "nothing": stated(200, b""),
    "no choices": stated(200, {"model": "served", "choices": [], "usage": None}),
    "nested beyond reason": stated(200, b"[" * 200_000),
    "an error with status 200": stated(200, {"error": {"message": "the engine is dead", "code": 500}}),
    "a page with status 200": stated(200, HTML, PAGE),
    "not gzip": stated(200, b"this is not gzip", {**JSON, "content-encoding": "gzip"}),
}
SLOW: dict[str, Send] = {"silence": silence, "drip": drip}  # only a deadline ends them
ENDLESS: dict[str, Send] = {"endless": endless}
FAULTS: dict[str, Send] = REFUSALS | BROKEN | SLOW | ENDLESS
QUICK = (*REFUSALS, *BROKEN)  # those that cost a client a second at most
