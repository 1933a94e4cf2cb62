"""The suggestion in an analyst's reply: JSON, YAML, or prose with headings, in fences or not; of several the first.

Reading never raises and is bounded in time and memory for every text: JSON and YAML become texts, lists and mappings
within limits, and prose is read line by line. What is no text is written as one; a long field is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from opsmith.agents.fences import list_fenced_blocks
from opsmith.agents.reply import MAX_REPLY
from opsmith.agents.yaml_text import Rows, write_text
from opsmith.models.answers import strip_thoughts
from opsmith.models.bounded_yaml import load_bounded
from opsmith.models.parts import replace_surrogates
from opsmith.records import Suggestion

FIELDS = ("what", "where", "why", "effect")
MAX_FIELD = 1_000  # characters of each field that are kept
MAX_BLOCKS = 8  # fenced blocks looked at, the first ones
MAX_STARTS = 8  # places where a JSON object may begin in prose
MAX_JSON = 2**17  # characters of one JSON text
MAX_LINES = 2_000  # of prose
MAX_NESTING = 4  # mappings around a suggestion

_SYNONYMS: Mapping[str, str] = {  # what models call the fields, in small letters without marks
    "what": "what, suggestion, change, action, title, optimization, optimisation, recommendation",
    "where": "where, location, place, line, lines",
    "why": "why, reason, rationale, because, bottleneck, motivation",
    "effect": "effect, impact, gain, benefit, speedup, expected effect, expected impact, expected gain,"
    " expected benefit, expected speedup, expected improvement",
}
_NAMES = {name: field for field, names in _SYNONYMS.items() for name in names.split(", ")}
_LABEL = re.compile(
    r"[ \t]{0,8}(?:>[ \t]?)?(?:#{1,6}[ \t]|[-*+][ \t]|\d{1,2}[.)][ \t])?[ \t]{0,4}[*_`\"']{0,3}"
    r"([A-Za-z][A-Za-z _]{1,20})[*_`\"']{0,3}[ \t]{0,4}(?:(:)|$)[*_`\"']{0,3}[ \t]*(.*)"
)
_MARKS = " \t*_`\"'"


@dataclass(frozen=True)
class SuggestionReply:
    """The suggestion in a reply, or why there is none."""

    suggestion: Suggestion | None
    problem: str = ""  # in words; empty exactly when there is a suggestion


def read_suggestion_reply(text: str) -> SuggestionReply:
    """The suggestion in an analyst's reply, or the reason where there is none.

    >>> read_suggestion_reply('what: "unroll by 4"').suggestion
    Suggestion(what='unroll by 4', where='', why='', effect='')
    """
    if len(text) > MAX_REPLY:
        return SuggestionReply(None, f"a reply of {len(text)} characters; expected at most {MAX_REPLY}")
    answer = strip_thoughts(replace_surrogates(text)).strip()
    if not answer:
        return SuggestionReply(None, "a train of thought without an answer" if text.strip() else "an empty reply")
    for fields in _list_readings(answer):
        suggestion = read_fields(fields)
        if suggestion is not None:
            return SuggestionReply(suggestion)
    return SuggestionReply(None, f"{len(answer)} characters that name no change under `what`")


def read_fields(fields: Mapping[Any, Any]) -> Suggestion | None:
    """A mapping as a suggestion; None: it does not say what to do."""
    texts: dict[str, str] = {}
    for key, value in fields.items():
        name = _NAMES.get(_plain_name(str(key)))
        text = _write_value(value)
        if name is not None and text and name not in texts:
            texts[name] = text
    return Suggestion(**texts) if "what" in texts else None


def suggestion_rows(suggestion: Suggestion) -> Rows:
    """The entries of a suggestion in a prompt; none for a field that says nothing."""
    values = {name: getattr(suggestion, name) for name in FIELDS}
    return {name: write_text(value) for name, value in values.items() if value.strip()}


def _list_readings(answer: str) -> Iterator[Mapping[Any, Any]]:
    """What may be the suggestion, the likeliest first."""
    blocks = [*list_fenced_blocks(answer)[:MAX_BLOCKS], answer]
    for block in blocks:
        for value in (_load_json(block), load_bounded(block)):
            yield from _walk_mappings(value, MAX_NESTING)
    labelled = [labels for block in blocks if (labels := _read_labels(block))]
    yield from labelled or [_read_paragraph(answer)]


def _load_json(text: str) -> Any:
    """The first JSON object or list of a text; None: none is whole."""
    starts = (match.start() for match in re.finditer(r"[{\[]", text[:MAX_JSON]))
    for start in islice(starts, MAX_STARTS):
        try:
            return json.JSONDecoder(strict=False).raw_decode(text[start : start + MAX_JSON])[0]
        except (ValueError, RecursionError):
            continue
    return None


def _walk_mappings(value: Any, depth: int) -> Iterator[Mapping[Any, Any]]:
    """A value that is a mapping, then those inside it."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list) and depth:
        for entry in islice(value, MAX_LINES):
            yield from _walk_mappings(entry, depth - 1)


def _read_labels(text: str) -> dict[str, str]:
    """Prose whose paragraphs begin with the fields' names: `**What:** ...`, `## Why`. A name that comes again begins
    the next suggestion, which is not read."""
    texts: dict[str, list[str]] = {}
    name = ""
    for line in islice(text.splitlines(), MAX_LINES):
        match = _LABEL.fullmatch(line[: 2 * MAX_FIELD])
        begun = _NAMES.get(_plain_name(match[1])) if match else None
        if begun in texts:
            break
        if match and begun:
            name = begun
            texts[name] = [match[3].strip(_MARKS)]
        elif name:
            texts[name].append(line.strip())
    return {name: "\n".join(lines) for name, lines in texts.items()}


def _read_paragraph(text: str) -> dict[str, str]:
    """The first paragraph that is a sentence and announces nothing."""
    paragraphs = (paragraph.strip() for paragraph in islice(re.split(r"\n[ \t]*\n", text), MAX_BLOCKS))
    sentences = [paragraph for paragraph in paragraphs if len(paragraph.split()) > 2 and not paragraph.endswith(":")]
    return {"what": sentences[0]} if sentences and not sentences[0].startswith(("{", "[", "```")) else {}


def _plain_name(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())


def _write_value(value: Any) -> str:
    """A value as a text on its own; nothing for one that has other mappings inside."""
    if isinstance(value, list):
        value = "; ".join(map(str, value)) if all(isinstance(entry, (str, int, float)) for entry in value) else ""
    if isinstance(value, (bool, type(None), Mapping)):
        return ""
    text = str(value).strip()
    return text if len(text) <= MAX_FIELD else f"{text[: MAX_FIELD - 4].rstrip()} ..."
