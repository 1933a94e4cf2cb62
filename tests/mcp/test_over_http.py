"""Who may speak to the server over HTTP: who has the token, from no page of a browser, under a name of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

import httpx
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from opsmith.errors import UsageError
from opsmith.mcp.over_http import BearerGuard, make_app, parse_address, serve_http
from opsmith.mcp.places import TaskPlaces
from opsmith.mcp.service import MOST_OF_CLIENT, Service
from opsmith.records import Level
from opsmith.ui import listening
from opsmith.ui.guard import LOOPBACK

TOKEN = "a-token-of-some-length"
GOOD = {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:8742"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Host": "localhost:8742"}, 200),
        ({"Origin": "http://127.0.0.1:8742"}, 200),
        ({"Authorization": ""}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": "Bearer \u00fc".encode("latin-1")}, 401),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:9"}, 403),
        ({"Host": "evil.example:8742"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "["}, 421),
    ],
)  # fmt: skip
def test_a_request_passes_with_the_token_and_without_a_foreign_name(headers, status):
    client = TestClient(BearerGuard(PlainTextResponse("ok"), TOKEN, LOOPBACK))
    answer = client.get("/mcp", headers={**GOOD, **headers})
    assert answer.status_code == status
    assert TOKEN not in answer.text
    assert (answer.text == "ok") == (status == 200)


def test_on_every_address_any_name_will_do_but_the_token_is_needed():
    client = TestClient(BearerGuard(PlainTextResponse("ok"), TOKEN, None))
    assert client.get("/mcp", headers={**GOOD, "Host": "my-machine:1"}).status_code == 200
    assert client.get("/mcp", headers={"Host": "my-machine:1"}).status_code == 401


@pytest.mark.parametrize(
    "address", ["8742", "localhost", "http://localhost:1", "a:b", "x:99999", "user@host:1", "h:1/x", ""]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="expected HOST:PORT"):
        parse_address(address)


def test_a_short_token_is_refused_before_anything_listens():
    with pytest.raises(UsageError, match="16 to 200"):
        serve_http(None, "127.0.0.1:0", "short", print)  # type: ignore[arg-type]


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
VERIFY = {"name": "verify", "arguments": {"task": "gemm_2", "program": "x"}}


class Silent:
    """A judge that answers nobody."""

    def __init__(self) -> None:
        self.asked, self.freed = 0, 0

    async def judge(self, task: Any, source: str, level: Level = Level.CHEAP) -> Any:
        self.asked += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.freed += 1


@asynccontextmanager
async def serving(judge: Any, share: int = 1) -> AsyncIterator[int]:
    """The port of a server."""
    app = BearerGuard(make_app(Service(TaskPlaces(), judge, share=share)), TOKEN, None)
    config = uvicorn.Config(
        app, port=0, http=listening.PunctualProtocol, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


async def wait_until(holds: Any) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def open_session(client: httpx.AsyncClient) -> dict[str, str]:
    """The headers of a client's further requests."""
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
    await client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    return headers


def speak_to(port: int) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20)


def test_what_a_client_that_left_asked_for_is_given_up():
    async def go() -> None:
        judge = Silent()
        async with serving(judge) as port, speak_to(port) as client:
            sessions = [await open_session(client) for _ in range(3)]
            asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": VERIFY}
            calls = [asyncio.create_task(client.post("/mcp", headers=headers, json=asked)) for headers in sessions]
            await wait_until(lambda: judge.asked == len(calls))
            for call in calls:
                call.cancel()
            await wait_until(lambda: judge.freed == len(calls))

    asyncio.run(go())


def test_one_client_has_its_share_of_the_workers_and_a_bounded_queue():
    async def go() -> None:
        judge = Silent()
        async with serving(judge, share=2) as port, speak_to(port) as client:
            greedy, modest = await open_session(client), await open_session(client)
            posts = [
                client.post(
                    "/mcp",
                    headers=headers,
                    json={"jsonrpc": "2.0", "id": 2 + n, "method": "tools/call", "params": VERIFY},
                )
                for headers, count in ((greedy, MOST_OF_CLIENT), (modest, 1))
                for n in range(count)
            ]
            calls = [asyncio.create_task(post) for post in posts]
            await wait_until(lambda: judge.asked == 3)
            further = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": VERIFY}
            assert "too many calls" in (await client.post("/mcp", headers=greedy, json=further)).text
            assert judge.asked == 3
            for call in calls:
                call.cancel()
            await wait_until(lambda: judge.freed == judge.asked)

    asyncio.run(go())


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: x\r\n", b"POST /mcp HTTP/1.1\r\nHost: x\r\n"
                                  b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: 9\r\n\r\n{"])  # fmt: skip
def test_a_request_that_does_not_arrive_whole_is_not_waited_for(monkeypatch, sent):
    monkeypatch.setattr(listening, "REQUEST_S", 0.3)

    async def go() -> None:
        async with serving(Silent()) as port, asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            await reader.read()  # until it is closed
            writer.close()

    asyncio.run(go())
