"""Calls of tools as servers tell them, however oddly, and conversations as servers take them back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import MessageParam, ToolParam
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import TypeAdapter

from opsmith.models import Message, ToolCall, ToolOffer
from opsmith.models.calls import MAX_ARGUMENTS, MAX_CALLS, keep_blocks, keep_fields, read_function_calls, read_tool_uses
from opsmith.models.turns import (
    NOT_RUN,
    build_block_offers,
    build_block_turns,
    build_chat_offers,
    build_chat_turns,
)

LOOK = ToolOffer("look_up", "A construct.", '{"type":"object","properties":{"word":{"type":"string"}}}')
ODD = [  # what a server tells as one call: (id, name, arguments), and what is read
    (("a1", "try", '{"x": 1}'), ToolCall("a1", "try", '{"x": 1}')),
    ((None, "try", '{"x": 1'), ToolCall("call-1", "try", '{"x": 1')),
    (("", "try", None), ToolCall("call-1", "try", "{}")),
    ((5, None, ["y"]), ToolCall("call-1", "", '["y"]')),
    (("white space", "no such tool!", {"b": 1, "a": None}), ToolCall("call-1", "no such tool!", '{"a":null,"b":1}')),
    (("x" * 65, "n" * 70, "lone \ud800"), ToolCall("call-1", "n" * 64, "lone ?")),
    (("a", "try", float("nan")), ToolCall("a", "try", "arguments that are no JSON: ValueError")),
    (
        ("a", "try", "x" * (MAX_ARGUMENTS + 1)),
        ToolCall("a", "try", "262145 characters, of which at most 262144 are read"),
    ),
]


@pytest.mark.parametrize(("stated", "call"), ODD)
def test_an_odd_call_is_read_whole_by_both_protocols(stated: tuple[Any, Any, Any], call: ToolCall) -> None:
    name, tool, arguments = stated
    function = {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
    assert read_function_calls({"tool_calls": [function]}) == (call,)
    assert read_tool_uses([{"type": "tool_use", "id": name, "name": tool, "input": arguments}]) == (call,)


@pytest.mark.parametrize("listed", [None, 5, {}, [], "x"])
def test_what_is_no_list_of_calls_has_none(listed: object) -> None:
    assert read_function_calls({"tool_calls": listed}) == read_tool_uses(listed) == ()


def test_calls_that_share_an_id_get_ids_of_ours_and_there_are_not_endlessly_many() -> None:
    calls = read_function_calls({"tool_calls": [{"id": "a", "function": {"name": "f"}}] * 1000})
    assert len({call.id for call in calls}) == len(calls) == MAX_CALLS


def test_entries_that_are_no_calls_and_legacy_calls_are_calls_all_the_same() -> None:
    assert read_function_calls({"tool_calls": [None, {"name": "f", "arguments": {}}]}) == (
        ToolCall("call-1", "", "{}"),
        ToolCall("call-2", "f", "{}"),
    )
    assert read_function_calls({"function_call": {"name": "f", "arguments": "{}"}}) == (ToolCall("call-1", "f", "{}"),)


TALK = (
    Message("system", "rules"),
    Message("user", "task"),
    Message(
        "assistant", "Let me see.", calls=(ToolCall("a", "look_up", '{"word":"Zip"}'), ToolCall("b", "odd!", "{x"))
    ),
    Message("tool", "pairs two", call="a"),
    Message("tool", "no such call", call="zzz"),
    Message("user", "Answer now."),
    Message("assistant", "", calls=(ToolCall("c", "look_up", "{}"),)),
    Message("tool", "", call="c"),
)


def test_a_conversation_is_what_openais_types_say_with_every_call_answered() -> None:
    turns = build_chat_turns(TALK, dict, with_thoughts=False)
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(turns)
    TypeAdapter(list[ChatCompletionToolUnionParam]).validate_python(build_chat_offers([LOOK]))
    assert [turn["role"] for turn in turns] == [
        *("system", "user", "assistant", "tool", "tool", "user", "assistant", "tool")
    ]
    assert [(turn["tool_call_id"], turn["content"]) for turn in turns if turn["role"] == "tool"] == [
        ("a", "pairs two"),
        ("b", NOT_RUN),
        ("c", ""),
    ]
    first, odd = turns[2]["tool_calls"]
    assert first["function"]["arguments"] == '{"word":"Zip"}'
    assert odd["function"] == {"name": "odd_", "arguments": '{"arguments": "{x"}'}, "what a server can read"


def test_a_conversation_is_what_anthropics_types_say_with_all_results_in_one_turn() -> None:
    turns = build_block_turns(TALK, dict)
    TypeAdapter(list[MessageParam]).validate_python(turns)
    TypeAdapter(list[ToolParam]).validate_python(build_block_offers([LOOK]))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    kinds = [[block["type"] for block in turn["content"]] for turn in turns[1:]]
    assert kinds == [
        ["text", "tool_use", "tool_use"],
        ["tool_result", "tool_result", "text"],
        ["tool_use"],
        ["tool_result"],
    ]
    assert turns[1]["content"][2]["input"] == {"arguments": "{x"}


def test_blocks_of_thought_go_back_as_they_came_with_ids_that_results_can_name() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    hidden = {"type": "redacted_thinking", "data": "zzz"}
    use = {"type": "tool_use", "id": "", "name": "try", "input": {"x": 1}}
    content = [thought, hidden, {"type": "text", "text": " "}, use]
    calls = read_tool_uses(content)
    assistant = Message("assistant", " ", calls=calls, raw=keep_blocks(content, calls))
    turns = build_block_turns([assistant, Message("tool", "ok", call="call-1")], dict)
    assert turns[0]["content"] == [thought, hidden, {**use, "id": "call-1"}]
    assert turns[1]["content"][0]["tool_use_id"] == "call-1"
    assert keep_blocks([use], calls) == "", "without thoughts the turn is made anew"
    assert keep_blocks([thought], ()) == "", "without calls nothing has to go back"


def test_thoughts_stay_here_unless_a_server_wants_them_and_what_hangs_on_a_call_goes_back() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"signature": "s"}}
    message = {"reasoning_content": "hm", "reasoning_details": [{"text": "hm"}], "tool_calls": [call]}
    calls = read_function_calls(message)
    talk = [Message("assistant", "", calls=calls, raw=keep_fields(message, calls))]
    [sparing, _], [full, _] = (build_chat_turns(talk, dict, with_thoughts) for with_thoughts in (False, True))
    assert sparing["tool_calls"][0]["extra_content"] == {"signature": "s"}
    assert sparing["reasoning_details"] == [{"text": "hm"}]
    assert "reasoning_content" not in sparing
    assert full["reasoning_content"] == "hm"
    assert build_block_turns(talk, dict)[0]["content"][0]["type"] == "tool_use", "another protocol's is not sent"
    json.dumps([sparing, full])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "function", "name", "arguments", "input", "text", "signature"]), inner
        )
    ),
    max_leaves=12,
)
TYPED = st.dictionaries(st.sampled_from(["id", "name", "input", "text", "thinking"]), ANYTHING)
BLOCK = st.builds(lambda block, kind: {**block, "type": kind}, TYPED, st.sampled_from(["text", "thinking", "tool_use"]))


@given(st.lists(ANYTHING | BLOCK, max_size=4))
def test_whatever_a_server_tells_can_be_stored_and_sent_back(entries: list[Any]) -> None:
    message = {"tool_calls": entries, "reasoning_details": entries}
    calls, uses = read_function_calls(message), read_tool_uses(entries)
    talk = [Message("assistant", "", calls=calls, raw=keep_fields(message, calls))]
    talk += [Message("assistant", "", calls=uses, raw=keep_blocks(entries, uses))]
    for turns in (build_chat_turns(talk, dict, with_thoughts=True), build_block_turns(talk, dict)):
        json.dumps(turns, ensure_ascii=False, allow_nan=False).encode()
