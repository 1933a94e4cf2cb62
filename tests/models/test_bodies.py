"""A body may be long, and not without end: what it unpacks to is counted."""

from __future__ import annotations

import gzip
import json

import pytest

from opsmith.models import bodies

from .common import FakeTime, ask
from .servers import AnthropicServer, Fault, OpenAIServer

SERVERS = {"openai/served": OpenAIServer, "anthropic/served": AnthropicServer}


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("status", [200, 500])
def test_a_reply_that_unpacks_to_more_than_a_completion_can_be_is_none(
    model: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "LARGEST", 2**16)
    server = SERVERS[model]("short")
    whole = json.dumps(server.reply({"model": "served"}, "long")).encode() + b" " * 2**17
    packed = Fault(status, gzip.compress(whole), {"content-encoding": "gzip"})
    server._faults = iter([packed])
    with server:
        assert ask(model, server.url, retry=FakeTime().retry()).texts == ("short",)
    assert server.count == 2


def test_a_reply_of_many_pieces_arrives_whole() -> None:
    text = "word " * 200_000
    with OpenAIServer(text) as server:
        assert ask("openai/served", server.url).texts == (text,)
