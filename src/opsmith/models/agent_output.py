"""What a command-line agent answered: a text as it is, or the JSON that agents print when asked to, with its usage.

Three forms are known beside plain text, each by the names of its fields: one object with `result` (Claude Code's
`--output-format json`, or the last line of `stream-json`) or with `response` (Gemini CLI's), and lines of events of
which one holds an `agent_message` (Codex' `exec --json`). Of an object, `usage` and `total_cost_usd` are read. A script
of one's own may print its answer, and `{"usage": {"input_tokens": 1200, "output_tokens": 340}}` on the last line. JSON
without any of these names is the answer itself. What is not reported is not known: no tokens, and a cost of None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from opsmith.models import Reply
from opsmith.models.answers import NO_TEXT
from opsmith.models.attempt import Failure
from opsmith.models.parts import read_count
from opsmith.records import Usage

MOST_USD = 1e6  # of one reply
_ANSWERS = ("result", "response")  # the fields of an object that hold the answer
_CACHED, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"  # beside `input_tokens`
_OF_THEM = "cached_input_tokens"  # among `input_tokens`


@dataclass(frozen=True)
class _Answer:
    """None: there is no text, no word of usage, no name of a model."""

    text: str | None
    usage: Usage | None = None
    model: str = ""


def read_output(printed: str, written: str | None = None) -> Reply:
    """The reply in what an agent printed; `written`: its file, which is the text then. Raises Failure where an agent
    says that it failed.

    >>> read_output('{"result": "E1", "usage": {"input_tokens": 7, "output_tokens": 2}, "total_cost_usd": 0.5}').usage
    Usage(requests=1, input_tokens=7, output_tokens=2, cached_tokens=0, cost_usd=0.5, reasoning_tokens=0)
    """
    answer = _read_answer(printed)
    text = answer.text if written is None else written
    usage = answer.usage or Usage(cost_usd=None)
    ending = "stop" if text and text.strip() else f"{NO_TEXT}: the command answered nothing"
    return Reply((text or "",), replace(usage, requests=1), answer.model, (ending,))


def _read_answer(printed: str) -> _Answer:
    report = _parse_object(printed)
    if report is not None:
        return _read_object(report, printed)
    body, _, line = printed.rstrip().rpartition("\n")
    last = _parse_object(line)
    if last is None:
        return _Answer(printed)
    events = [event for event in map(_parse_object, body.splitlines()) if event is not None]
    entries = [event["item"] for event in events if isinstance(event.get("item"), dict)]
    texts = [entry.get("text") for entry in entries if entry.get("type") == "agent_message"]
    message = next((text for text in reversed(texts) if isinstance(text, str)), None)  # the last one
    return _read_object(last, printed if message is None and not _is_usage(last) else message or body)


def _read_object(stated: Mapping[str, Any], text: str) -> _Answer:
    """Of an object that an agent prints; `text`: the answer where the object holds none."""
    answer = next((stated[name] for name in _ANSWERS if isinstance(stated.get(name), str)), None)
    if stated.get("is_error") is True or (answer is None and stated.get("type") == "result"):
        raise Failure(f"the agent failed: {answer or stated.get('subtype') or 'no word of why'}")
    is_report = answer is not None or _is_usage(stated)
    if not is_report:
        return _Answer(text)
    return _Answer(text if answer is None else answer, _count_usage(stated), _find_model(stated))


def _is_usage(stated: Mapping[str, Any]) -> bool:
    return isinstance(stated.get("usage"), dict) or isinstance(stated.get("total_cost_usd"), int | float)


def _find_model(stated: Mapping[str, Any]) -> str:
    """The model that an agent says it asked, where it names one."""
    by_model = stated.get("modelUsage")
    names = [stated["model"]] if isinstance(stated.get("model"), str) else []
    names += [*by_model] if isinstance(by_model, dict) else []
    return str(names[0]) if len(names) == 1 else ""


def _count_usage(stated: Mapping[str, Any]) -> Usage:
    usage = stated.get("usage")
    counts = {name: read_count(value) for name, value in usage.items()} if isinstance(usage, dict) else {}
    apart, written = counts.get(_CACHED) or 0, counts.get(_WRITTEN) or 0
    tokens = (counts.get("input_tokens") or 0) + apart + written
    cached = min(apart + (counts.get(_OF_THEM) or 0), tokens)
    return Usage(1, tokens, counts.get("output_tokens") or 0, cached, _read_usd(stated.get("total_cost_usd")))


def _read_usd(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if isfinite(value) and 0 <= value <= MOST_USD else None


def _parse_object(text: str) -> dict[str, Any] | None:
    """None: it is no JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
