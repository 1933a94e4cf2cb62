"""Model servers on loopback that fail by a plan, and know which replies they have sent whole.

    with FaultyOpenAI(answer, Plan(share=0.3, kinds=QUICK)) as server:
        ...                                # a run against server.url
        server.sent                        # how often the reply to each request went out, to its last byte

`answer(key)` decides a reply by the request's key: its seed where the protocol has one, else the number of the
request. `leave` makes the server refuse connections, `come_back` ends that, at the same address; `hold_after` makes it
answer so many requests and let the later ones wait until it is None again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiohttp import web
from models.servers import AnthropicServer, OpenAIServer, _Server

from chaos.faults import FAULTS, JSON
from chaos.plan import CALM, Plan


class Said(NamedTuple):
    """A reply: its text (None: null), and why it ended."""

    text: str | None
    cut: bool = False  # it reached the limit of tokens
    headers: Mapping[str, str] = JSON


WRONG = "return E0"
RIGHT = """\
E1 = step.Bufferize(a=1).apply(E0)
E2 = step.Map(fn=fn_gate).apply(E1)
E3, E4 = step.Copy().apply(E2)
E5 = step.Map(fn=fn_top1).apply(E3)
return E5, E4"""  # of index_0


def program(source: str, key: str) -> str:
    """A reply with a program that no other request is sent: it is judged on its own."""
    return "Here it is.\n```yaml\nimpl: |\n  " + f"# {key}\n{source}".replace("\n", "\n  ") + "\n```\n"


def plain(key: str) -> Said:
    """Programs, one of four is right."""
    return Said(program(RIGHT if random.Random(key).random() < 0.25 else WRONG, key))


def odd(key: str) -> Said:
    """Programs, and every odd reply that a model may honestly give; the key is in all that have a text."""
    odd_ones = [
        Said(f"{key}: I cannot write this program."),
        Said(""),
        Said(None),
        Said(program(RIGHT, key)[:-60], cut=True),
        Said(f"{key} \ud83d half a pair, \x00 nothing, \u202e turned\n" + program(RIGHT, key)),
        Said("```yaml\nimpl: [1, 2\n```\n" + key),
        Said(program(RIGHT, key), headers={"content-type": "text/plain"}),
        Said(program(RIGHT, key) + "x" * 200_000),
    ]
    rng = random.Random(f"{key} odd")
    return rng.choice(odd_ones) if rng.random() < 0.4 else plain(key)


@dataclass(frozen=True)
class Sent:
    """A reply that went out to its last byte, or a fault."""

    key: str
    kind: str  # "reply", or the fault's name


class _Faulty(_Server):
    """The plan and the books; the protocols are below."""

    def __init__(self, said: Callable[[str], Said] = plain, plan: Plan = CALM) -> None:
        super().__init__()
        self.said = said
        self.plan = plan
        self.hold_after: int | None = None  # replies
        self.log: list[Sent] = []
        self.arrived: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._admitted = 0

    @property
    def sent(self) -> Counter[str]:
        """By key: the replies that were sent whole."""
        return Counter(item.key for item in self.log if item.kind == "reply")

    @property
    def texts(self) -> list[str]:
        """Those of the replies that were sent whole."""
        return sorted(self.said(item.key).text or "" for item in self.log if item.kind == "reply")

    @property
    def faults(self) -> Counter[str]:
        return Counter(item.kind for item in self.log if item.kind != "reply")

    def reset(self, plan: Plan = CALM) -> None:
        """Forget what was; from now on by that plan."""
        self.plan, self.hold_after = plan, None
        self.log, self.arrived, self._numbers, self._admitted = [], Counter(), itertools.count(), 0

    def leave(self) -> None:
        """Refuse connections, and cut those that are open."""
        self._soon(self._leave())

    def come_back(self) -> None:
        """Serve again; nothing, if it did not leave."""
        if not self._runner.sites:
            self._soon(web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start())

    def _soon(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    @property
    def _port(self) -> int:
        return int(self.url.removesuffix(self.prefix).rpartition(":")[2])

    async def _leave(self) -> None:
        for site in list(self._runner.sites):
            await site.stop()
        assert self._runner.server is not None
        for connection in list(self._runner.server.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body, log = await request.json(), self.log
        key = self.key(body)
        attempt = self.arrived[key]
        self.arrived[key] += 1
        await asyncio.sleep(self.plan.delay_s(key, attempt))
        said = self.said(key)
        data = json.dumps(self.whole(body, said)).encode()
        fault = self.plan.fault(key, attempt)
        if fault is not None:
            log.append(Sent(key, fault))
            return await FAULTS[fault](request, data)
        await self._may_answer()
        response = web.Response(body=data, headers=said.headers)
        with contextlib.suppress(ConnectionError):  # the client is gone
            await response.prepare(request)
            await response.write_eof()
            log.append(Sent(key, "reply"))
        return response

    async def _may_answer(self) -> None:
        while self.hold_after is not None and self._admitted >= self.hold_after:
            await asyncio.sleep(0.02)
        self._admitted += 1

    def key(self, body: Mapping[str, Any]) -> str:
        """What names a request, so that its answer is the same however often it is asked."""
        return str(next(self._numbers))

    def whole(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        raise NotImplementedError


class FaultyOpenAI(_Faulty, OpenAIServer):
    def key(self, body: Mapping[str, Any]) -> str:
        return str(body["seed"]) if "seed" in body else super().key(body)

    def whole(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        reply = self.reply(body, [said.text])
        reply["choices"][0]["finish_reason"] = "length" if said.cut else "stop"
        return reply


class FaultyAnthropic(_Faulty, AnthropicServer):
    """The protocol has no seed: a request that is sent again is another one to this server."""

    def whole(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        reply = self.reply(body, said.text or "")
        return (
            reply | {"stop_reason": "max_tokens" if said.cut else "end_turn"} | ({} if said.text else {"content": []})
        )
