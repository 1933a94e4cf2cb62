"""An analyst's reply holds one suggestion, however it is written; hostile replies hold none and cost little."""

from __future__ import annotations

import time

import pytest

from opsmith.agents.suggestion import MAX_FIELD, read_suggestion_reply
from opsmith.records import Suggestion

WHOLE = Suggestion("unroll the loop by 4", "lines 3: 5", "one sum waits for the next", "1.5")

FORMS = {
    "yaml": 'what: "unroll the loop by 4"\nwhere: "lines 3: 5"\nwhy: one sum waits for the next\neffect: "1.5"\n',
    "yaml that is none": "what: unroll the loop by 4\nwhere: lines 3: 5\nwhy: one sum waits for the next\neffect: 1.5\n",
    "fenced": "I looked.\n```yaml\nwhat: unroll the loop by 4\nwhere: 'lines 3: 5'\n"
    "why: one sum waits for the next\neffect: 1.5\n```\n",
    "json": '{"what": "unroll the loop by 4", "where": "lines 3: 5", "why": "one sum waits for the next",'
    ' "effect": 1.5, "code": {"a": 1}}',
    "json in prose": 'Sure! {"suggestion": "unroll the loop by 4", "location": "lines 3: 5",'
    ' "rationale": "one sum waits for the next", "expected_speedup": "1.5"} Good luck.',
    "nested, several": "suggestions:\n- change: unroll the loop by 4\n  place: 'lines 3: 5'\n"
    "  reason: one sum waits for the next\n  impact: 1.5\n- change: tile\n  place: everywhere\n",
    "headings": "## What\nunroll the loop by 4\n\n## Where\nlines 3: 5\n## Why\none sum waits for the next\n"
    "## Expected effect\n1.5\n",
    "bold, several": "1. **What:** unroll the loop by 4\n   **Where:** lines 3: 5\n   - *Why*: one sum waits for the next\n"
    "   - Effect: `1.5`\n\n2. **What:** tile by 32\n   **Where:** there\n",
    "after thoughts": '<think>what: "tile"</think>what: "unroll the loop by 4"\nwhere: "lines 3: 5"\n'
    "why: one sum waits for the next\neffect: '1.5'\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_suggestion_is_read_from_what_models_write(form):
    assert read_suggestion_reply(FORMS[form]).suggestion == WHOLE


def test_plain_prose_is_a_suggestion_without_a_place():
    reply = "Here is what I found:\n\nBlock the loop over k by 64, so that rows of B stay in the cache.\n\nIt may help."
    suggestion = read_suggestion_reply(reply).suggestion
    assert suggestion == Suggestion("Block the loop over k by 64, so that rows of B stay in the cache.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an empty reply"),
        ("<think>what: tile", "a train of thought"),
        ("where: line 3\nwhy: slow", "name no change under `what`"),
        ('{"what": ""}', "name no change"),
        ("No.", "name no change"),
        ("x" * (2**20 + 1), "1048577 characters"),
    ],
)
def test_a_reply_without_a_suggestion_says_why(text, words):
    reply = read_suggestion_reply(text)
    assert reply.suggestion is None
    assert words in reply.problem


def test_long_fields_are_cut():
    suggestion = read_suggestion_reply("what: " + "unroll " * 10_000).suggestion
    assert suggestion is not None
    assert len(suggestion.what) <= MAX_FIELD


HOSTILE = {
    "deep json": "[" * 200_000,
    "deep mappings": '{"a":' * 100_000,
    "deep yaml": "- " * 100_000,
    "aliases": "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(5000)),
    "fences": "```\n" * 100_000,
    "labels": "what: " * 100_000,
    "stars": "*" * 1_000_000,
    "blanks": " " * 500_000 + "what",
    "short lines": "what\n" * 200_000,
    "surrogates": "what: a\ud800b",
    "digits": '{"what": ' + "9" * 100_000 + "}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_replies_are_read_in_bounded_time(text):
    start = time.process_time()
    read_suggestion_reply(text)
    assert time.process_time() - start < 20
