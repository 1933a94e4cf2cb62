"""What is a model's answer, and what is its provider's doing."""

from __future__ import annotations

import pytest

from opsmith.models import Reply
from opsmith.models.answers import describe_missing_answer, holds_answer
from opsmith.records import Usage


def reply(*completions: tuple[str, str]) -> Reply:
    return Reply(tuple(text for text, _ in completions), Usage(1), "m", tuple(ending for _, ending in completions))


@pytest.mark.parametrize(
    ("text", "ending"),
    [("x", "stop"), ("x", ""), ("x", "length"), ("x", "tool_calls"), ("x", "new word"), ("", "stop"), (" \n", "eos")],
)
def test_a_text_is_an_answer_and_so_is_an_empty_one_that_the_model_ended(text: str, ending: str) -> None:
    assert describe_missing_answer(reply((text, ending))) == ""


@pytest.mark.parametrize(
    ("text", "ending", "words"),
    [
        (
            "",
            "content_filter",
            "broken off by the provider (it ended: 'content_filter'); expected a text; try: another",
        ),
        ("impl: half of", "content_filter", "broken off by the provider"),
        ("impl: half of", "insufficient_system_resource", "broken off by the provider"),
        (
            "",
            "length",
            "(it ended: 'length': it ran out of tokens while reasoning); expected a text; try: a larger max_tokens",
        ),
        (" \n\t", "length", "a larger max_tokens"),
        ("", "tool_calls", "calls no tools unasked"),
        ("", "no text: content is a number", "'no text: content is a number'"),
        ("", "", "it ended: not told"),
        ("", "\x1b[2J" + "x" * 10_000, r"'\x1b[2Jxxx"),
    ],
)
def test_what_stands_in_its_place_is_named_with_what_to_try(text: str, ending: str, words: str) -> None:
    told = describe_missing_answer(reply((text, ending)))
    assert words in told
    assert len(told) < 400
    assert told.isprintable()


def test_a_model_that_tells_no_ending_ended_by_itself_and_one_without_completions_said_nothing() -> None:
    assert describe_missing_answer(Reply(("",), Usage(1))) == ""
    assert "no text" in describe_missing_answer(Reply((), Usage(1)))


def test_a_reply_holds_an_answer_when_one_of_its_completions_is_one() -> None:
    assert holds_answer(reply(("", "length"), ("x", "stop")))
    assert not holds_answer(reply(("", "length"), ("x", "content_filter")))
    assert not holds_answer(reply())
