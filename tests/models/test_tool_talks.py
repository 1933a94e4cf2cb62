"""Conversations with tools through both SDKs, against servers that check what they are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from opsmith.models import ChatModel, Message, Reply, Request
from opsmith.models.answers import describe_missing_answer
from opsmith.models.table import get_model
from opsmith.settings import Settings

from .common import ASKED, CANARY, FakeTime, ask
from .servers import AnthropicServer, Fault, OpenAIServer, refused
from .test_calls import LOOK
from .tool_servers import THINKING, Call, Step, ToolTalk, insistent, toolless

OFFERED = replace(ASKED, tools=(LOOK,), max_tokens=4096)
BOTH = pytest.mark.parametrize(("name", "kind"), [("openai/m", OpenAIServer), ("anthropic/m", AnthropicServer)])
REFUSED_WORDS = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit: https://..."),
    (400, "Unsupported parameter: 'tools' is not supported with this model."),
    (422, '[{"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]'),
    (400, "Function calling is not enabled for this model"),
    (400, "`tool calling` is not supported with this model"),
    (400, "This model doesn't support tool use."),
    (400, "tools: Extra inputs are not permitted"),
    (400, "Unrecognized request argument supplied: tools"),
    (400, "deepseek-reasoner does not support Function Calling"),
]
OTHER_WORDS = [
    "tools.0.input_schema: JSON schema is invalid",
    "Invalid schema for function 'look_up': array schema missing items",
    "tools.0.custom.strict: Extra inputs are not permitted",
    "This model's maximum context length is 8192 tokens; your tools take 9000",
]


def converse(name: str, url: str, request: Request, most: int = 5) -> list[Reply]:
    """All replies of a conversation in which every call is answered, until one calls nothing."""

    async def go(model: ChatModel) -> list[Reply]:
        talk, replies = request, []
        try:
            for _ in range(most):
                replies.append(await model.complete(talk))
                [calls] = replies[-1].calls or ((),)
                if not calls:
                    break
                raw = replies[-1].raw[0] if replies[-1].raw else ""
                turn = Message("assistant", replies[-1].texts[0], calls=calls, raw=raw)
                results = [Message("tool", f"ran {call.name}", call=call.id) for call in calls]
                talk = replace(talk, messages=(*talk.messages, turn, *results))
            return replies
        finally:
            await model.close()

    return asyncio.run(go(get_model(Settings(model=name, base_url=url), retry=FakeTime().retry(attempts=1))))


@contextmanager
def serving(kind: type, answer: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    with kind(answer) as server:
        yield server


@BOTH
def test_tools_are_called_in_turn_several_at_once_and_answered_together(name: str, kind: type) -> None:
    two = Step((Call("look_up", {"word": "Zip"}), Call("look_up", {"word": "Map"})), text="Let me see.")
    talk = ToolTalk([two, Step((Call("look_up", {}),)), "impl: x"])
    with serving(kind, talk) as server:
        first, second, last = converse(name, server.url, OFFERED)
    assert talk.problems == []
    assert [json.loads(call.arguments) for call in first.calls[0]] == [{"word": "Zip"}, {"word": "Map"}]
    assert first.texts == ("Let me see.",)
    assert second.texts == ("",)
    assert describe_missing_answer(second) == ""
    assert (last.texts, last.calls, last.raw) == (("impl: x",), (), ())


@BOTH
@pytest.mark.parametrize(
    "odd",
    [
        Call("no such tool", {"word": "Zip"}),
        Call("look_up", '{"word": "Zi'),
        Call("look_up", ["Zip"]),
        Call("look_up", "x" * 300_000),
        Call("look_up", {"word": "lone \ud800"}),
        Call(None, None, 5),
        Call("look_up", {}, "the same"),
    ],
)
def test_whatever_is_called_the_conversation_goes_on(name: str, kind: type, odd: Call) -> None:
    talk = ToolTalk([Step((odd, odd)), "impl: x"])
    with serving(kind, talk) as server:
        first, last = converse(name, server.url, OFFERED)
    assert talk.problems == []
    assert len({call.id for call in first.calls[0]}) == 2
    assert last.texts == ("impl: x",)


@BOTH
def test_a_server_that_calls_for_ever_is_asked_as_often_as_its_caller_likes(name: str, kind: type) -> None:
    with serving(kind, ToolTalk([Step((Call("look_up", {}),))])) as server:
        replies = converse(name, server.url, OFFERED, most=4)
    assert [len(reply.calls[0]) for reply in replies] == [1] * 4


@BOTH
def test_calls_that_nobody_offered_are_no_answer(name: str, kind: type) -> None:
    with serving(kind, ToolTalk([Step((Call("look_up", {}),))])) as server:
        reply = ask(name, server.url)
    assert (reply.calls, reply.raw) == ((), ())
    assert "calls no tools unasked" in describe_missing_answer(reply)


@BOTH
def test_a_key_is_blotted_out_of_calls_and_of_what_goes_back(name: str, kind: type) -> None:
    step = Step((Call(CANARY, {"word": CANARY}, CANARY),), thought=f"it is {CANARY}", text=CANARY)
    with serving(kind, ToolTalk([step])) as server:
        reply = ask(name, server.url, OFFERED)
    assert reply.raw
    assert CANARY not in repr(reply)
    assert CANARY[:12] not in repr(reply)


@pytest.mark.parametrize(("status", "words"), REFUSED_WORDS)
def test_a_server_without_tools_is_known_by_its_words_and_asked_by_text(status: int, words: str) -> None:
    talk = ToolTalk(["See:\n```tool\nname: look_up\narguments: {word: Zip}\n```", "impl: x"])
    with serving(OpenAIServer, toolless(talk, words, status)) as server:
        first, last = converse("openai/m", server.url, OFFERED)
    assert [(call.name, call.arguments) for call in first.calls[0]] == [("look_up", '{"word":"Zip"}')]
    assert last.texts == ("impl: x",)
    assert server.count == 3, "the refusal is learnt once"
    system, _, assistant, results = server.requests[-1]["messages"]
    assert "- look_up: A construct." in system["content"]
    assert "```tool" in assistant["content"]
    assert results == {"role": "user", "content": "Results of the tools:\n\n[1: look_up]\nran look_up\n"}


def test_the_same_holds_for_anthropic_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    talk = ToolTalk(["```tool\nname: look_up\n```", "impl: x"])
    with serving(AnthropicServer, toolless(talk, "tools: Extra inputs are not permitted")) as server:
        first, last = converse("anthropic/m", server.url, OFFERED)
    assert (first.calls[0][0].name, last.texts) == ("look_up", ("impl: x",))
    assert caplog.text.count("takes no tools; they are described in its system text from now on") == 1
    assert "- look_up: A construct." in server.requests[-1]["system"][0]["text"]


@pytest.mark.parametrize("words", OTHER_WORDS)
def test_words_about_one_tool_are_an_error_as_any(words: str) -> None:
    with serving(OpenAIServer, toolless(ToolTalk(["x"]), words)) as server, pytest.raises(Exception, match="HTTP 400"):
        ask("openai/m", server.url, OFFERED)
    assert server.count == 1


def test_anthropics_thoughts_go_back_unchanged_and_in_their_order() -> None:
    talk = ToolTalk(
        [
            Step((Call("look_up", {"word": "Zip"}), Call("look_up")), text="So.", thought="hm, Привет"),
            Step((Call("look_up"),), thought="further"),
            Step(text="impl: x", thought="last"),
        ]
    )
    with serving(AnthropicServer, talk) as server:
        replies = converse("anthropic/m", server.url, replace(OFFERED, reasoning="high"))
    assert talk.problems == []
    assert replies[-1].texts == ("impl: x",)
    assert [reply.usage.reasoning_tokens for reply in replies] == [THINKING] * 3
    assert {reply.usage.output_tokens for reply in replies} == {40}, "thoughts are part of the output"


def test_thoughts_are_not_sent_back_to_a_server_of_openais_protocol() -> None:
    talk = ToolTalk([Step((Call("look_up"),), thought="hm"), "impl: x"])
    with serving(OpenAIServer, talk) as server:
        first, last = converse("openai/m", server.url, OFFERED)
    assert (talk.problems, last.texts) == ([], ("impl: x",))
    assert first.usage.reasoning_tokens == THINKING


def test_a_server_that_insists_on_its_thoughts_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    talk = ToolTalk([Step((Call("look_up"),), thought="hm"), Step((Call("look_up"),), thought="so"), "impl: x"])
    with serving(OpenAIServer, insistent(talk)) as server:
        *_, last = converse("openai/m", server.url, OFFERED)
    assert last.texts == ("impl: x",)
    assert server.count == 4
    assert caplog.text.count("wants its reasoning back") == 1


def test_a_server_that_insists_on_thoughts_that_never_came_is_an_error() -> None:
    talk = ToolTalk([Step((Call("look_up"),)), "impl: x"])
    with serving(OpenAIServer, insistent(talk)) as server, pytest.raises(Exception, match="reasoning_content"):
        converse("openai/m", server.url, OFFERED)
    assert server.count == 3, "one call, and one attempt with thoughts that there are none of"


LADDER = [  # what a model refuses, in its words, and what it is sent at last
    ({}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}),
    (
        {"adaptive": "adaptive thinking is not supported on this model"},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    ({"effort": "This model does not support the effort parameter."}, {"thinking": {"type": "adaptive"}}),
    (
        {"adaptive": "thinking: Extra inputs are not permitted", "enabled": "thinking: Extra inputs are not permitted"},
        {},
    ),
    (
        {"adaptive": "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags"},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
]


@pytest.mark.parametrize(("refusals", "sent"), LADDER)
def test_anthropics_models_are_told_to_think_as_they_take_it(refusals: dict[str, str], sent: dict[str, Any]) -> None:
    def choosy(body: dict[str, Any]) -> str | Fault:
        asked = body.get("thinking", {}).get("type"), "effort" if "output_config" in body else None
        return next((refused(refusals[kind]) for kind in asked if kind in refusals), "ok")

    request = replace(ASKED, reasoning="medium", max_tokens=4096)
    with AnthropicServer(choosy) as server:
        ask("anthropic/m", server.url, request, times=2)
    last = server.requests[-1]
    assert {key: last[key] for key in ("thinking", "output_config") if key in last} == sent
    assert ("temperature" in last) == (not sent), "a model that thinks takes none"
    assert server.count == 2 + len(refusals), "each refusal is learnt once"


def test_a_budget_that_does_not_fit_is_not_asked_for_and_said(caplog: pytest.LogCaptureFixture) -> None:
    talk = toolless(lambda body: refused("adaptive is not supported") if "thinking" in body else "ok", "")
    with AnthropicServer(talk) as server:
        ask("anthropic/m", server.url, replace(ASKED, reasoning="low"), times=2)
    assert "thinking" not in server.requests[-1]
    assert caplog.text.count("1024 max_tokens leave no room for 1024 tokens of thought beside 1024 of answer") == 1


def test_openais_models_are_told_an_effort_and_servers_of_ones_own_what_templates_read() -> None:
    with OpenAIServer("ok") as server:
        ask("openai/m", server.url, replace(ASKED, reasoning="low"))
    assert server.requests[0]["reasoning_effort"] == "low"
    assert server.requests[0]["chat_template_kwargs"] == {"enable_thinking": True, "reasoning_effort": "low"}


@pytest.mark.parametrize(
    "words",
    [
        "Unrecognized request argument supplied: chat_template_kwargs",
        "'chat_template' or 'chat_template_kwargs' cannot be overridden for mistral tokenizer.",
    ],
)
def test_what_of_it_a_server_refuses_is_left_out(words: str) -> None:
    def choosy(body: dict[str, Any]) -> str | Fault:
        if "chat_template_kwargs" in body:
            return refused(words)
        effort = refused("Unsupported parameter: 'reasoning_effort' is not supported with this model.")
        return effort if "reasoning_effort" in body else "ok"

    with OpenAIServer(choosy) as server:
        ask("openai/m", server.url, replace(ASKED, reasoning="low"), times=2)
    assert server.count == 4
    assert not {"reasoning_effort", "chat_template_kwargs"} & server.requests[-1].keys()


@pytest.mark.parametrize("words", ["deepseek-reasoner does not support this tool_choice", "tool_choice: unknown value"])
def test_a_server_that_takes_no_tool_choice_keeps_its_tools(words: str) -> None:
    def choosy(body: dict[str, Any]) -> str | Fault:
        return refused(words) if "tool_choice" in body else "impl: x"

    with OpenAIServer(choosy) as server:
        ask("openai/m", server.url, replace(OFFERED, may_call=False))
    assert server.count == 2
    assert "tools" in server.requests[-1]
