"""Who may speak to the server over HTTP: who has the token, from no page of a browser, under a name of this machine."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from opsmith.errors import UsageError
from opsmith.mcp.over_http import BearerGuard, parse_address, serve_http
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
