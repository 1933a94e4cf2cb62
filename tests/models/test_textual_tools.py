"""Tools by text, for servers that do not speak of them."""

from __future__ import annotations

import json

import pytest

from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.models.textual_tools import read_calls, read_textual, write_textual
from opsmith.records import Usage

from .test_calls import LOOK, TALK


def fence(*lines: str, info: str = "tool") -> str:
    return "\n".join([f"```{info}", *lines, "```"])


def test_calls_are_read_in_their_order_with_the_types_that_json_has() -> None:
    text = f"First:\n{fence('name: try', 'arguments:', '  source: |', '    a = 1', '    ```', '  n: 3')}\n" + fence(
        "{name: look_up, arguments: {word: on, deep: [true, null, 1.5, 0x1, '7']}}"
    )
    one, two = read_calls(text)
    assert (one.id, one.name, json.loads(one.arguments)) == ("call-1", "try", {"source": "a = 1\n```\n", "n": 3})
    assert (two.id, json.loads(two.arguments)) == ("call-2", {"word": "on", "deep": [True, None, 1.5, "0x1", "7"]})


@pytest.mark.parametrize(
    "text",
    [
        fence("name: f", info="tools"),
        fence("name: f", info="tool yaml"),
        fence("name: f", info=""),
        "  " + fence("name: f"),
        "````python\n" + fence("name: f") + "\n````",
        "~~~\n" + fence("name: f") + "\n~~~",
        "<think>" + fence("name: f") + "</think>impl: x",
        "say ```tool and go on",
    ],
)
def test_only_a_block_of_its_own_with_that_word_alone_is_a_call(text: str) -> None:
    assert read_calls(text) == ()


@pytest.mark.parametrize("block", ["name: [", "- a", "arguments: {}", "name: 5", "a: &x [*x]", "x" * 200_000])
def test_a_block_that_cannot_be_read_is_a_call_of_no_name_with_its_text(block: str) -> None:
    [call] = read_calls(fence(block))
    assert (call.id, call.name) == ("call-1", "")
    assert call.arguments == block + "\n"


def test_a_last_block_without_an_end_is_a_call_unless_the_limit_of_tokens_cut_it() -> None:
    text = "```tool\nname: f"
    assert read_calls(text, "stop") == (ToolCall("call-1", "f", "{}"),)
    assert read_calls(text, "length") == ()
    reply = Reply((fence("name: f"), "impl: x"), Usage(1), finish=("stop", "stop"))
    assert read_textual(reply).calls == ((ToolCall("call-1", "f", "{}"),), ())


def test_a_conversation_becomes_texts_by_turns_and_its_calls_are_read_back() -> None:
    request = write_textual(Request(TALK, tools=(LOOK,)))
    assert request.tools == ()
    assert [message.role for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    system, _, assistant, user, *_ = request.messages
    assert system.content.startswith("rules\n")
    assert LOOK.schema in system.content
    assert next((call.name, call.arguments) for call in read_calls(assistant.content)) == ("look_up", '{"word":"Zip"}')
    assert user.content == "Results of the tools:\n\n[1: look_up]\npairs two\n\n[2: odd!]\nnot run\n\nAnswer now."
    assert not any(message.calls or message.call or message.raw for message in request.messages)


def test_a_turn_that_called_by_text_stays_as_it_was_written() -> None:
    text = "Let me.\n" + fence("name: f")
    [turn, _] = write_textual(Request((Message("assistant", text, calls=read_calls(text)),))).messages
    assert turn == Message("assistant", text)
