"""What a message consists of where it is sent: a text, or pictures and a text, alike in both protocols; and what of a
server's JSON is a word, a count or an object.

A model that takes no pictures says so in words of its own. They are known by their patterns, never by a status alone;
words about one broken picture are none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from opsmith.models import MOST_TOKENS, Message
from opsmith.models.pictures import Picture

TEXT = "text"  # the kind of a part
PICTURES = frozenset({"image", "image_url"})  # the kinds of a picture
_SIGHT = r"(?:images?|image_url|pictures?|vision|multi-?modal)"
_BLIND = re.compile(  # words of OpenAI, Anthropic, DeepSeek, OpenRouter, vLLM, llama.cpp, Ollama and the like
    rf"{_SIGHT}\b(?: \w+)? (?:is|are) (?:not|only) (?:supported|allowed|enabled)"
    rf"|(?:not|n't) (?:support|accept|take)\b[\w ]*{_SIGHT}\b(?!/| format)"
    r"|not a (?:multi-?modal|vision)|at most 0 image|unknown (?:variant|part type|content type)\W+image"
    r"|supports? image input|data required for image input|expected [`'\"]text",
    re.IGNORECASE,
)


def refuses_pictures(words: str) -> bool:
    """Whether a server says that its model takes no pictures."""
    return _BLIND.search(words) is not None


def build_content(message: Message, build_picture: Callable[[Picture], dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A message's content as both protocols have it: pictures first, the text last; a text alone is a string."""
    text = replace_surrogates(message.content)
    if not message.images:
        return text
    return [*map(build_picture, message.images), {"type": TEXT, "text": text}]


def holds_pictures(parameters: Mapping[str, Any]) -> bool:
    """Whether a request's body holds pictures."""
    return any(
        piece.get("type") in PICTURES for message in parameters.get("messages", ()) for piece in _list_pieces(message)
    )


def drop_pictures(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body without pictures."""
    return {**parameters, "messages": [_drop_from_message(message) for message in parameters.get("messages", ())]}


def _drop_from_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A text alone is a string again."""
    pieces = [piece for piece in _list_pieces(message) if piece.get("type") not in PICTURES]
    if len(pieces) == len(_list_pieces(message)):
        return message
    is_text = all(piece.get("type") == TEXT for piece in pieces)
    return {**message, "content": "".join(piece["text"] for piece in pieces) if is_text else pieces}


def _list_pieces(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a message's content consists of; empty where it is one text."""
    content = message["content"]
    return content if isinstance(content, list) else []


def replace_surrogates(text: str) -> str:
    """`text` without lone surrogates, which neither a socket nor a database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_object(value: object) -> dict[str, Any]:
    """An object of a server's JSON; empty for what is none."""
    return value if isinstance(value, dict) else {}


def read_word(value: object) -> str:
    """A server's word, such as a model's name; "" for what is none."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def read_count(value: object) -> int | None:
    """A number of tokens as a server states it; None for what is not one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST_TOKENS else None
