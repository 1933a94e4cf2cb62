"""Replies and refusals of OpenAI-compatible servers, through the official SDK."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opsmith.errors import ProviderError
from opsmith.models import Reply
from opsmith.records import Usage

from .common import ASKED, CANARY, ask
from .servers import Fault, OpenAIServer, refused


def body(*messages: dict[str, Any], finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": m, "finish_reason": finish} for m in messages], **more}


def test_a_reply_brings_texts_usage_the_dated_model_and_why_it_ended():
    with OpenAIServer("impl: x") as server:
        reply = ask("openai/gpt-4o", server.url, replace(ASKED, n=3, seed=7))
    usage = Usage(requests=1, input_tokens=100, output_tokens=30, cached_tokens=60, cost_usd=None)
    assert reply == Reply(("impl: x",) * 3, usage, "gpt-4o-2024-11-20", ("stop",) * 3)
    assert server.requests == [
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "You write programs."},
                {"role": "user", "content": "task: {}"},
            ],
            "temperature": 0.7,
            "max_tokens": 1024,
            "n": 3,
            "seed": 7,
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        (body({"role": "assistant", "content": ""}), "", "stop"),
        (body({"role": "assistant", "content": None}), "", "no text: content is null"),
        (body({"role": "assistant"}, finish=None), "", "no text: content is null"),
        (body({"content": 5}), "", "no text: content is a number"),
        (body({"content": []}), "", "no text: content is a list without text"),
        (body({"content": [{"type": "text", "text": 5}]}), "", "no text: content is a list without text"),
        (
            body({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": None}]}),
            "",
            "no text: content is a list without text",
        ),
        (body({"content": [{"type": "thinking"}, {"type": "text", "text": "a"}]}), "a", "stop"),
        (body({"content": {"value": "x"}}), "", "no text: content is an object without text"),
        (body({"content": ""}, finish="length"), "", "length"),
        (body({"content": "x"}, finish=5), "x", ""),
        (body({"content": "", "tool_calls": [{"id": "1"}]}), "", "tool_calls"),
        (body({"content": None, "function_call": {"name": "f"}}), "", "tool_calls"),
        (body({"content": "x", "tool_calls": [{"id": "1"}]}, finish="tool_calls"), "x", "tool_calls"),
        (body({"content": "x"}, finish="content_filter"), "x", "content_filter"),
        ({"choices": [None]}, "", "no text: content is null"),
        ({"choices": ["x"], "model": 5}, "", "no text: content is null"),
        ({"choices": [{"message": "x", "finish_reason": "stop"}]}, "", "no text: content is null"),
        (body({"content": "cut"}, finish="length"), "cut", "length"),
        (body({"content": None}, finish="content_filter"), "", "content_filter"),
        (body({"content": None, "refusal": "I cannot"}), "", "content_filter"),
        (body({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "ab", "stop"),
        (body({"content": "x", "reasoning_content": "hm"}), "x", "stop"),
        (body({"content": "lone \ud800"}), "lone ?", "stop"),
        (body({"content": "nul \0, crlf \r\n, Привет"}), "nul \0, crlf \r\n, Привет", "stop"),
        (body({"content": "x"}, usage=None), "x", "stop"),
        (body({"content": "x"}, usage={"prompt_tokens": None, "completion_tokens": -3}), "x", "stop"),
        (body({"content": "x"}, usage={"prompt_tokens": "100", "completion_tokens": "3"}), "x", "stop"),
        (body({"content": "x"}, usage="100"), "x", "stop"),
        (body({"content": "x"}, usage=[5]), "x", "stop"),
    ],
)
def test_every_completion_is_one_text_as_received(answer, text, finish):
    with OpenAIServer(answer) as server:
        reply = ask("openai/m", server.url)
    assert (reply.texts, reply.finish) == ((text,), (finish,))
    assert reply.usage.requests == 1


def test_one_choice_that_is_none_spoils_no_other():
    choices = [
        {"message": {"content": "a"}, "finish_reason": "stop"},
        None,
        {"index": 2},
        {"message": {"content": "b"}},
    ]
    with OpenAIServer({"choices": choices}) as server:
        reply = ask("openai/m", server.url, replace(ASKED, n=4))
    assert reply.texts == ("a", "", "", "b")
    assert reply.finish == ("stop", "no text: content is null", "no text: content is null", "")


def test_a_call_brings_what_a_server_that_ignores_n_sends_which_is_said(caplog):
    with OpenAIServer(lambda request: [f"seed {request['seed']}"]) as server:
        reply = ask("openai/m", server.url, replace(ASKED, n=3, seed=2**40 + 5), times=2)
    assert caplog.text.count("fewer completions come than a request asks for") == 1
    assert (reply.texts, reply.usage.requests, server.count) == (("seed 5",), 1, 2)


def test_more_completions_than_asked_for_are_cut():
    with OpenAIServer(["a", "b", "c"]) as server:
        assert ask("openai/m", server.url).texts == ("a",)


def reasoning(request: dict[str, Any]) -> str | Fault:
    """A model that refuses the parameters that reasoning models refuse, in the server's own words."""
    if "max_tokens" in request:
        text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' ..."
        return refused(text, "max_tokens")
    if "temperature" in request:
        return refused("'temperature' does not support 0.7 with this model. Only the default (1) value", "temperature")
    if "seed" in request:
        return refused('[{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]', status=422)
    return "thought" if "n" not in request else refused("n > 1 is not supported")


def test_a_refused_parameter_is_left_out_once_remembered_and_logged(caplog):
    with OpenAIServer(reasoning) as server:
        reply = ask("openai/o3", server.url, replace(ASKED, n=2, seed=1), times=2)
    assert reply.texts == ("thought",)
    assert server.count == 4 + 2  # four refusals, then one call for each request
    assert "temperature" not in server.requests[-1]
    assert server.requests[-1]["max_completion_tokens"] == 1024
    warnings = [record.getMessage() for record in caplog.records if record.name == "opsmith.models"]
    assert warnings == [
        "openai/o3: the model refuses 'max_tokens'; it is sent as 'max_completion_tokens' from now on",
        "openai/o3: the model refuses 'temperature'; it is left out from now on",
        "openai/o3: the model refuses 'seed'; it is left out from now on",
        "openai/o3: the model refuses 'n'; it is left out from now on",
    ]


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("This model's maximum context length is 8192 tokens; you requested 9000 (1024 in max_tokens)", "messages"),
        ("max_tokens is too large: 100000. This model supports at most 4096", "max_tokens"),
        ("temperature: must be <= 2", "temperature"),
    ],
)
def test_a_refused_value_is_an_error_and_not_dropped(message, parameter):
    with OpenAIServer(refused(message, parameter)) as server, pytest.raises(ProviderError) as caught:
        ask("openai/m", server.url)
    assert server.count == 1
    assert caught.value.status == 400
    assert str(caught.value).startswith(f"openai/m at {server.url}: given HTTP 400: {message}, after 1 attempt;")


def test_a_server_of_ones_own_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with OpenAIServer("ok") as server:
        assert ask("openai/m", server.url).texts == ("ok",)
    assert server.headers[0]["authorization"] == "Bearer none"


@pytest.mark.parametrize("before", range(9_980, 10_001, 4))
def test_no_half_of_a_key_is_left_where_a_servers_words_are_cut(before):
    with OpenAIServer(refused(" " * before + CANARY + "x" * 2**20)) as server, pytest.raises(ProviderError) as caught:
        ask("openai/m", server.url)
    assert CANARY[:4] not in str(caught.value)
    assert len(str(caught.value)) < 1000
