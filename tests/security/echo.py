"""A model server on loopback that tells everything it is sent back to its client, keys included, wherever it can.

What it answers is one of `ANSWERS`: a right reply with the key in its prose, its model name, its finish reason and its
headers; errors that quote the key as providers do; a redirect that has the key in its address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from models.batch_servers import AnthropicBatchServer, OpenAIBatchServer
from models.servers import AnthropicServer, Fault, OpenAIServer

PROGRAM = "x y +"
SOON = {"retry-after-ms": "1"}


@dataclass
class Echo:
    """What a server sends for a key that it has got; `elsewhere`: where a redirect leads."""

    kind: str
    program: str = PROGRAM
    elsewhere: str = ""
    seen: list[str] = field(default_factory=list)

    def text(self, key: str) -> str:
        half = key[: len(key) // 2]
        return f"Your key is {key}, its half is {half}.\n```yaml\nimpl: |\n  {self.program}\n{key}: {key}\n```\nAgain: {key}"

    def fault(self, key: str, wanted: str) -> Fault:
        quoted = {"error": {"message": f"Incorrect key provided: {key}", "type": key, "code": key, "param": key}}
        faults = {
            "401": Fault(401, quoted, {"x-echo": key}),
            "500": Fault(500, {"error": f"Authorization: Bearer {key}"}, {"x-echo": key, **SOON}),
            "text": Fault(400, f"{key} is not JSON\r\n{key}", {"content-type": f"text/{key}", **SOON}),
            "redirect": Fault(307, {"error": key}, {"location": f"{self.elsewhere}/{key}?key={key}", **SOON}),
        }
        return faults[wanted]


def key_of(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("Authorization", "").removeprefix("Bearer ")


def echoing(server: type, echo: Echo, faults: Iterable[str] = ()) -> Any:
    """A server of that protocol: first the `faults`, then `echo.kind`."""
    left = iter(faults)

    class Echoing(server):  # type: ignore[misc, valid-type]
        async def _serve(self, request: web.Request) -> web.StreamResponse:
            body, key = await request.json(), key_of(request.headers)
            self.requests.append(body)
            echo.seen.append(key)
            kind = next(left, echo.kind)
            if kind != "reply":
                return await self._fail(request, echo.fault(key, kind))
            return web.json_response(self.spoiled(self.reply(body, echo.text(key)), key), headers={"x-echo": key})

        def spoiled(self, reply: dict[str, Any], key: str) -> dict[str, Any]:
            reply = reply | {"id": key, "model": f"{reply['model']}-{key}", "system_fingerprint": key, key: key}
            for choice in reply.get("choices", ()):
                choice["finish_reason"] = key
            return reply | ({"stop_reason": key} if "stop_reason" in reply else {})

    return Echoing()


SERVERS: Mapping[str, Callable[..., Any]] = {"openai": OpenAIServer, "anthropic": AnthropicServer}
BATCHES: Mapping[str, Callable[..., Any]] = {"openai": OpenAIBatchServer, "anthropic": AnthropicBatchServer}
