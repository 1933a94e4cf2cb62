"""A conversation with tools as each protocol has it: offers, calls and results. Pure.

A conversation without any is sent as it always was.

Both protocols insist that every call is answered right after the turn that made it, and Anthropic's that all answers
stand in one turn of the user's: a call that nobody answered is answered here with `NOT_RUN`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opsmith.models import Message, ToolCall, ToolOffer
from opsmith.models.calls import THOUGHTS, build_tool_use, load_arguments, spell_name
from opsmith.models.parts import TEXT, build_content, replace_surrogates
from opsmith.models.pictures import Picture

NOT_RUN = "not run"  # the result of a call that has none
PictureBuilder = Callable[[Picture], dict[str, Any]]


def answer_all(messages: Sequence[Message]) -> Iterator[Message]:
    """The conversation, with a result for each call that has none."""
    open_calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role != "tool":
            yield from (Message("tool", NOT_RUN, call=name) for name in open_calls)
            open_calls = {call.id: call for call in message.calls}
        elif open_calls.pop(message.call, None) is None:
            continue  # the result of no call, which servers refuse
        yield message
    yield from (Message("tool", NOT_RUN, call=name) for name in open_calls)


def build_chat_offers(offers: Sequence[ToolOffer]) -> list[dict[str, Any]]:
    """Tools as OpenAI's protocol offers them."""
    return [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": json.loads(offer.schema),
            },
        }
        for offer in offers
    ]


def build_chat_turns(messages: Sequence[Message], build: PictureBuilder, with_thoughts: bool) -> list[dict[str, Any]]:
    """The messages in OpenAI's protocol. `with_thoughts`: the server wants a turn's reasoning back with its calls."""
    return [_build_chat_turn(message, build, with_thoughts) for message in answer_all(messages)]


def _build_chat_turn(message: Message, build: PictureBuilder, with_thoughts: bool) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": build_content(message, build)}
    if message.role == "tool":
        return {**turn, "tool_call_id": message.call}
    if not message.calls:
        return turn
    fields = _read_raw(message, dict) or {}
    attached = fields.pop("tool_calls", [])
    calls = [
        {**(attached[place] if place < len(attached) else {}), **_build_chat_call(call)}
        for place, call in enumerate(message.calls)
    ]
    thoughts = {name: value for name, value in fields.items() if with_thoughts or name not in THOUGHTS}
    return {**turn, "content": turn["content"] or None, "tool_calls": calls, **thoughts}


def _build_chat_call(call: ToolCall) -> dict[str, Any]:
    """A call with arguments that a server can read: some build a prompt from them and refuse broken JSON."""
    arguments = load_arguments(call.arguments)
    text = call.arguments if "arguments" not in arguments else json.dumps(arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": spell_name(call.name), "arguments": text}}


def _read_raw(message: Message, kind: type) -> Any:
    """What a provider wants back, where it is of this protocol: the one that a run was begun with may be another."""
    raw = json.loads(message.raw) if message.raw else None
    return raw if isinstance(raw, kind) else None


def build_block_offers(offers: Sequence[ToolOffer]) -> list[dict[str, Any]]:
    """Tools as Anthropic's protocol offers them."""
    return [
        {"name": offer.name, "description": offer.description, "input_schema": json.loads(offer.schema)}
        for offer in offers
    ]


def build_block_turns(messages: Sequence[Message], build: PictureBuilder) -> list[dict[str, Any]]:
    """The turns in Anthropic's protocol; the system's are none. Results that follow one another, and what the user says
    after them, are one turn."""
    turns: list[dict[str, Any]] = []
    answers = False  # whether the last turn holds results
    for message in answer_all([message for message in messages if message.role != "system"]):
        if answers and message.role in {"tool", "user"}:
            turns[-1]["content"] += _list_blocks(message, build)
        elif message.role == "tool" or message.calls:
            role = "user" if message.role == "tool" else message.role
            turns.append({"role": role, "content": _list_blocks(message, build)})
        else:
            turns.append({"role": message.role, "content": build_content(message, build)})
        answers = message.role == "tool" or (answers and message.role == "user")
    return turns


def _list_blocks(message: Message, build: PictureBuilder) -> list[dict[str, Any]]:
    """A message as a list of content blocks."""
    text = replace_surrogates(message.content)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call, "content": text}]
    raw = _read_raw(message, list)
    if raw:
        return list(raw)
    words = [{"type": TEXT, "text": text}] if text.strip() else []
    return [*map(build, message.images), *words, *map(build_tool_use, message.calls)]
