"""Calls of tools in a reply, as both protocols tell them, read from what nobody vouches for.

Every call of a reply is read as one `ToolCall`, however odd: whoever runs tools says what is wrong with it. An id that
is missing, too odd to be sent back or used twice is one of ours, made from the call's place; arguments that are no text
are written as JSON. What cannot be read is never half read: arguments that are too long become a text that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from opsmith.models import ToolCall
from opsmith.models.parts import replace_surrogates

MAX_CALLS = 64  # of one reply; further ones are dropped
MAX_ARGUMENTS = 2**18  # characters of one call's
MAX_NAME = 64  # characters of a tool's name, in both protocols
NO_ARGUMENTS = "{}"
NOT_TEXT = frozenset({"thinking", "redacted_thinking"})  # blocks that Anthropic wants back as they came
KNOWN_KEYS = frozenset({"id", "type", "function", "index"})  # of a call in OpenAI's protocol
THOUGHTS = ("reasoning_content", "reasoning")  # fields that most servers do not want back, and some insist on

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")


class _Claim(NamedTuple):
    """A call as a server tells it."""

    id: object
    name: object
    arguments: object


def read_function_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of an assistant's message in OpenAI's protocol, its legacy `function_call` among them."""
    listed = message.get("tool_calls")
    claims = [_read_function(entry) for entry in listed] if isinstance(listed, list) else []
    legacy = message.get("function_call")
    if not claims and isinstance(legacy, Mapping):
        claims = [_Claim(None, legacy.get("name"), legacy.get("arguments"))]
    return _name_calls(claims)


def _read_function(entry: object) -> _Claim:
    entry = entry if isinstance(entry, Mapping) else {}
    function = entry.get("function")
    if isinstance(function, Mapping):
        return _Claim(entry.get("id"), function.get("name"), function.get("arguments"))
    return _Claim(entry.get("id"), entry.get("name"), entry.get("arguments"))  # as some servers flatten it


def read_tool_uses(content: object) -> tuple[ToolCall, ...]:
    """The calls among the content blocks of a message in Anthropic's protocol."""
    return _name_calls(
        [_Claim(block.get("id"), block.get("name"), block.get("input")) for block in _list_blocks(content, "tool_use")]
    )


def _list_blocks(content: object, *kinds: str) -> Iterator[Mapping[str, Any]]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") in kinds:
            yield block


def _name_calls(claims: Sequence[_Claim]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for claim in claims[:MAX_CALLS]:
        name = replace_surrogates(claim.name)[:MAX_NAME] if isinstance(claim.name, str) else ""
        calls.append(ToolCall(choose_id(claim.id, taken), name, read_arguments(claim.arguments)))
    return tuple(calls)


def choose_id(stated: object, taken: set[str]) -> str:
    """The id that a server stated, if it may be sent back and is nobody else's, or else one of ours; then `taken`.

    >>> taken = set()
    >>> [choose_id(stated, taken) for stated in ("a", "a", None, "call-3", "call-3")]
    ['a', 'call-1', 'call-2', 'call-3', 'call-4']
    """
    name = stated if isinstance(stated, str) and _ID.fullmatch(stated) else ""
    number = 0
    while not name or name in taken:
        number += 1
        name = f"call-{number}"
    taken.add(name)
    return name


def read_arguments(stated: object) -> str:
    """A call's arguments as text: as received where they are one, else as JSON.

    >>> read_arguments('{"a": 1'), read_arguments({"b": 1, "a": "x"}), read_arguments(None), read_arguments(5)
    ('{"a": 1', '{"a":"x","b":1}', '{}', '5')
    """
    if stated is None or stated == "":
        return NO_ARGUMENTS
    text = replace_surrogates(stated) if isinstance(stated, str) else dump_arguments(stated)
    if len(text) > MAX_ARGUMENTS:
        return f"{len(text)} characters, of which at most {MAX_ARGUMENTS} are read"
    return text if text.strip() else NO_ARGUMENTS


def dump_arguments(value: object) -> str:
    """Arguments as canonical JSON; those that JSON does not have, as text that is none."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        return f"arguments that are no JSON: {type(error).__name__}"
    return replace_surrogates(text)


def load_arguments(text: str) -> dict[str, Any]:
    """A call's arguments as the object that servers insist on; broken ones as one that quotes them.

    >>> load_arguments('{"a": 1}'), load_arguments('{"a": 1')
    ({'a': 1}, {'arguments': '{"a": 1'})
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # it can be sent
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": text}


def spell_name(name: str) -> str:
    """A tool's name as protocols take it back: a call of a tool that nobody offered may be named anything.

    >>> spell_name("look up!"), spell_name("")
    ('look_up_', 'unnamed')
    """
    return _ODD.sub("_", name)[:MAX_NAME] or "unnamed"


def keep_blocks(content: object, calls: Sequence[ToolCall]) -> str:
    """The content blocks of a reply in Anthropic's protocol that its next turn must repeat, as JSON; "": it may be made
    anew from text and calls, since there is no thought among them. `calls`: as `read_tool_uses` read them.
    """
    if not calls or not any(_list_blocks(content, *NOT_TEXT)):
        return ""
    pending = iter(calls)
    blocks: list[dict[str, Any]] = []
    for block in _list_blocks(content, *NOT_TEXT, "text", "tool_use"):
        if block["type"] == "tool_use":
            blocks += map(build_tool_use, islice(pending, 1))  # none beyond MAX_CALLS
        elif block["type"] != "text" or (isinstance(block.get("text"), str) and block["text"].strip()):
            blocks.append(dict(block))
    return _dump_kept(blocks)


def build_tool_use(call: ToolCall) -> dict[str, Any]:
    """A call as a block of Anthropic's protocol."""
    return {
        "type": "tool_use",
        "id": call.id,
        "name": spell_name(call.name),
        "input": load_arguments(call.arguments),
    }


def keep_fields(message: Mapping[str, Any], calls: Sequence[ToolCall]) -> str:
    """The fields of a reply in OpenAI's protocol that servers want back beside text and calls, as JSON; "": none.

    These are thoughts (`reasoning_details`, `reasoning_content`, `reasoning`) and what is attached to calls, such as
    the signatures of thoughts; of the latter there is an entry for each call.
    """
    if not calls:
        return ""
    fields = {name: message[name] for name in ("reasoning_details", *THOUGHTS) if message.get(name)}
    listed = message.get("tool_calls")
    entries = listed[:MAX_CALLS] if isinstance(listed, list) else []
    attached = [
        {key: value for key, value in entry.items() if key not in KNOWN_KEYS} if isinstance(entry, Mapping) else {}
        for entry in entries
    ]
    if any(attached):
        fields["tool_calls"] = attached
    return _dump_kept(fields) if fields else ""


def _dump_kept(value: object) -> str:
    """What goes back as it came, as JSON that can be sent; "": it cannot."""
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):
        return ""
