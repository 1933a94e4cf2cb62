"""What a model refuses is found out by few requests, however many are under way, and said once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from clocks import lasts_at_most

from opsmith.models import Reply
from opsmith.models.table import get_model
from opsmith.settings import Settings

from .common import ASKED, FakeTime
from .servers import AnthropicServer, Fault, OpenAIServer, refused
from .test_openai_model import reasoning


def slowly(body: dict[str, Any]) -> str | Fault:
    """As reasoning models do; the refusals take a moment, so that all requests are under way by then."""
    found = reasoning(body)
    return replace(found, delay_s=0.2) if isinstance(found, Fault) else found


def choosy(body: dict[str, Any]) -> str | Fault:
    if "temperature" in body:
        return replace(refused("`temperature` is deprecated for this model."), delay_s=0.2)
    if "cache_control" in str(body):
        return replace(refused("cache_control: Extra inputs are not permitted"), delay_s=0.2)
    return "ok"


def asked(name: str, url: str, requests: int, n: int = 1) -> list[Reply]:
    """So many requests at once."""

    async def go() -> list[Reply]:
        settings = Settings(model=name, base_url=url, concurrency=64)
        model = get_model(settings, retry=FakeTime().retry())
        try:
            return list(await asyncio.gather(*(model.complete(replace(ASKED, n=n, seed=at)) for at in range(requests))))
        finally:
            await model.close()

    return asyncio.run(go())


def test_requests_under_way_are_refused_once_each_and_one_finds_out_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    with OpenAIServer(slowly) as server:
        assert len(asked("openai/o3", server.url, 64)) == 64
    wasted = server.count - 64
    assert wasted <= 64 + 2, "the first refusal meets all 64; the other two parameters cost one request each"
    assert caplog.text.count("the model refuses") == 3


def test_the_same_holds_for_anthropic(caplog: pytest.LogCaptureFixture) -> None:
    with AnthropicServer(choosy) as server:
        assert len(asked("anthropic/m", server.url, 32)) == 32
    assert server.count - 32 <= 32 + 1
    assert caplog.text.count("the model refuses") == 2


def test_where_several_completions_are_refused_a_call_brings_one() -> None:
    with OpenAIServer(slowly) as server:
        replies = asked("openai/o3", server.url, 4, n=3)
    assert [reply.texts for reply in replies] == [("thought",)] * 4
    assert server.count <= 4 + 4 + 3


def test_who_waits_for_the_one_ahead_goes_on_when_it_fails() -> None:
    faults = [refused("Unsupported parameter: 'seed' is not supported", "seed")] * 8 + [Fault(status=404, body={})]
    with OpenAIServer("ok", faults=[replace(fault, delay_s=0.1) for fault in faults]) as server:

        async def go() -> list[Reply | BaseException]:
            model = get_model(Settings(model="openai/m", base_url=server.url), retry=FakeTime().retry())
            model.channel._gate.allowed = 8.0  # as after some replies: a server of one's own begins with one
            try:
                calls = (model.complete(replace(ASKED, seed=at)) for at in range(8))
                return list(await asyncio.gather(*calls, return_exceptions=True))
            finally:
                await model.close()

        with lasts_at_most(20.0, time.monotonic):
            found = asyncio.run(go())
    assert sum(isinstance(reply, Reply) for reply in found) == 7
