"""Tools for models on servers that do not speak of them: they are offered in the system text, and called by text. Pure.

The model calls by a fenced block whose info word is exactly `tool`, at the start of a line, outside of any other block
(several are several calls):

    ```tool
    name: check
    arguments:
      source: |
        return E0
    ```

The results stand in the user's next turn. A block that cannot be read is a call all the same, of no name and with its
text as arguments, so that the model is told. Thoughts, and blocks quoted in other blocks, are no calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.models.answers import strip_thoughts
from opsmith.models.bounded_yaml import load_bounded
from opsmith.models.calls import MAX_CALLS, MAX_NAME, dump_arguments, read_arguments
from opsmith.models.turns import answer_all

INFO = "tool"
_JSON_WORD = re.compile(r"true|false|null|-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?:[eE][-+]?\d{1,2})?")
_FENCE = re.compile(r"(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*")
_HEAD = """

Tools. You may call tools before you answer. To call one, write a block like this, at the start of a line and in no
other block, and end your turn there; several blocks are several calls. The results come in the next turn. When you need
no further tool, answer as you were asked to, without such a block.

```tool
name: NAME
arguments:
  KEY: VALUE
```

The tools, with the JSON schemas of their arguments:
"""
_RESULTS = "Results of the tools:\n"


def write_textual(request: Request) -> Request:
    """The request without tools: offered in the system text, calls and results as the texts of their turns."""
    messages = list(_label_results(answer_all(request.messages)))
    rows = [f"\n- {offer.name}: {offer.description.strip()}\n  {offer.schema}\n" for offer in request.tools]
    offers = "".join([_HEAD, *rows]) if rows and request.may_call else ""
    if offers and messages[0].role != "system":
        messages.insert(0, Message("system", ""))
    turns = [message for role, group in groupby(messages, _name_turn) for message in _join_turn(role, list(group))]
    if offers:
        turns[0] = replace(turns[0], content=(turns[0].content + offers).lstrip("\n"))
    return replace(request, messages=tuple(turns), tools=())


def _label_results(messages: Iterable[Message]) -> Iterator[Message]:
    """The conversation, each result with the place and the name of its call."""
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: f"[{number}: {call.name}]" for number, call in enumerate(message.calls, 1)}
        label = names.get(message.call, "")
        yield replace(message, content=f"{label}\n{message.content}") if message.role == "tool" else message


def _name_turn(message: Message) -> str:
    return "user" if message.role == "tool" else message.role


def _join_turn(role: str, messages: Sequence[Message]) -> Iterator[Message]:
    """Messages of one role in a row; results of tools and what the user says after them become one message."""
    results = [message for message in messages if message.role == "tool"]
    if not results:
        yield from map(_write_calls, messages)
        return
    texts = "".join(f"\n{message.content}\n" for message in results)
    words = "".join(f"\n{message.content}" for message in messages if message.role != "tool")
    pictures = tuple(picture for message in messages for picture in message.images)
    yield Message("user", f"{_RESULTS}{texts}{words}", pictures)


def _write_calls(message: Message) -> Message:
    """An assistant's turn as text: calls that do not stand in it already, since they came otherwise, are added."""
    if not message.calls:
        return message
    missing = message.calls[len(read_calls(message.content)) :]
    texts = [f"name: {dump_arguments(call.name)}\narguments: {call.arguments}\n" for call in missing]
    blocks = "".join(f"\n```{INFO}\n{text}```\n" for text in texts)
    return Message("assistant", f"{message.content.rstrip()}\n{blocks}".lstrip("\n") if blocks else message.content)


def read_textual(reply: Reply) -> Reply:
    """The reply with the calls that its texts make, as a server would tell them that speaks of tools."""
    endings = (*reply.finish, *["stop"] * len(reply.texts))
    calls = tuple(read_calls(text, ending) for text, ending in zip(reply.texts, endings, strict=False))
    return replace(reply, calls=calls) if any(calls) else reply


def read_calls(text: str, ending: str = "stop") -> tuple[ToolCall, ...]:
    """The calls in a text, named by their places; a last block that the limit of tokens cut is none.

    >>> read_calls("```tool\\nname: look_up\\narguments: {word: Zip, n: 2}\\n```")
    (ToolCall(id='call-1', name='look_up', arguments='{"n":2,"word":"Zip"}'),)
    """
    if f"```{INFO}" not in text and f"~~~{INFO}" not in text:
        return ()
    blocks = _list_blocks(strip_thoughts(text), ending != "length")
    return tuple(_read_call(number, block) for number, block in zip(range(1, MAX_CALLS + 1), blocks, strict=False))


def _list_blocks(text: str, takes_open: bool) -> Iterator[str]:
    """The contents of the blocks that call; `takes_open`: also of one that is never closed."""
    fence, is_call = "", False
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line.rstrip())
        if not fence and match:
            fence, is_call, lines = match["ticks"], match["info"] == INFO, []
        elif fence and match and match["ticks"].startswith(fence) and not match["info"]:
            if is_call:
                yield "".join(lines)
            fence = ""
        else:
            lines.append(line)
    if fence and is_call and takes_open:
        yield "".join(lines)


def _read_call(number: int, block: str) -> ToolCall:
    call = f"call-{number}"
    stated = load_bounded(block, _read_scalar)
    name = stated.get("name") if isinstance(stated, dict) else None
    if not isinstance(name, str):
        return ToolCall(call, "", read_arguments(block))
    return ToolCall(call, name[:MAX_NAME], read_arguments(stated.get("arguments")))


def _read_scalar(node: Any) -> Any:
    """Numbers, true, false and null are what they are in JSON; all else is a text."""
    is_plain = not node.style and _JSON_WORD.fullmatch(node.value)
    return json.loads(node.value) if is_plain else node.value
