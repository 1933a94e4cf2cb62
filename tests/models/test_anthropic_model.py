"""Replies and refusals of Anthropic-compatible servers, through the official SDK."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opsmith.models import Message, Reply
from opsmith.records import Usage

from .common import ASKED, CANARY, ask
from .servers import AnthropicServer, Fault, refused


def body(*content: Any, stop: Any = "end_turn", **more: Any) -> dict[str, Any]:
    return {"model": "m", "content": list(content), "stop_reason": stop, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_reply_brings_texts_usage_the_dated_model_and_why_it_ended():
    with AnthropicServer("impl: x") as server:
        reply = ask("anthropic/claude-x", server.url, replace(ASKED, n=2, temperature=1.4, seed=3))
    usage = Usage(requests=1, input_tokens=100, output_tokens=10, cached_tokens=60, cost_usd=None)
    assert reply == Reply(("impl: x",), usage, "claude-x-20250514", ("stop",))
    cache = {"type": "ephemeral"}
    assert server.requests[0] == {
        "model": "claude-x",
        "system": [{"type": "text", "text": "You write programs.", "cache_control": cache}],
        "messages": [{"role": "user", "content": "task: {}"}],
        "max_tokens": 1024,
        "temperature": 1.0,
        "cache_control": cache,
    }
    assert server.count == 1
    assert CANARY in str(server.headers[0])


@pytest.mark.parametrize(
    ("answer", "words", "finish"),
    [
        (body(), "", "no text: content is a list without text"),
        (body(text("")), "", "stop"),
        (body(stop=None), "", "no text: content is a list without text"),
        (body({"type": "text", "text": 5}), "", "no text: content is a list without text"),
        (body(text("a"), 7), "", "no text: content is a list without text"),
        (body({"type": "thinking", "thinking": "hm"}), "", "no text: content is a list without text"),
        (body({"type": "thinking", "thinking": "hm"}, stop="max_tokens"), "", "length"),
        (body(text("I can"), stop="refusal"), "I can", "content_filter"),
        (body(text("x"), stop=["end_turn"], usage="none", model=5), "x", ""),
        ({"content": None, "stop_reason": "refusal"}, "", "content_filter"),
        (body(text("cut"), stop="max_tokens"), "cut", "length"),
        (body(text("full"), stop="model_context_window_exceeded"), "full", "length"),
        (body(text("a"), text("b"), stop="stop_sequence"), "ab", "stop"),
        (body({"type": "thinking", "thinking": "hm"}, text("x")), "x", "stop"),
        (body({"type": "tool_use", "name": "f", "input": {}}, stop="tool_use"), "", "tool_use"),
        (body(text("x"), usage=None), "x", "stop"),
    ],
)
def test_every_completion_is_one_text_as_received(answer, words, finish):
    with AnthropicServer(answer) as server:
        reply = ask("anthropic/m", server.url)
    assert (reply.texts, reply.finish) == ((words,), (finish,))


def test_a_conversation_without_a_system_prompt_sends_none():
    with AnthropicServer("ok") as server:
        ask("anthropic/m", server.url, replace(ASKED, messages=(Message("user", "hi"),)))
    assert "system" not in server.requests[0]


def choosy(request: dict[str, Any]) -> str | Fault:
    if "temperature" in request:
        return refused("`temperature` is deprecated for this model.")
    return refused("cache_control: Extra inputs are not permitted") if "cache_control" in str(request) else "ok"


def test_a_refused_parameter_is_left_out_and_remembered(caplog):
    with AnthropicServer(choosy) as server:
        assert ask("anthropic/m", server.url, times=2).texts == ("ok",)
    assert server.count == 4
    assert server.requests[-1]["system"] == "You write programs."
    assert caplog.text.count("refuses 'temperature'") == 1
