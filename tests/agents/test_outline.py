"""A plan before the program (`--think`): asked for, and never read as a program."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opsmith.agents.bare import expected_reply
from opsmith.agents.outline import request_outline
from opsmith.agents.prompt import PromptStyle, compose_prompt, read_prompt
from opsmith.agents.reply import CUT_SHORT, ReplyForm, read_reply
from opsmith.models import Message
from opsmith.targets.step import STEP

TABLE = yaml.safe_load((Path(__file__).parent / "reply_shapes.yaml").read_text(encoding="utf-8"))
TASK = STEP.read_task(TABLE["task"], "row_energy")
PROGRAM = TABLE["program"].rstrip("\n")
IMPL = "impl: |\n" + "".join(f"  {line}\n" for line in PROGRAM.splitlines())
OUTLINED = ReplyForm(outlined=True)
BARE = ReplyForm(expected_reply(STEP), outlined=True)


@pytest.mark.parametrize(
    "reply",
    [
        f"plan: |\n  First square, then sum.\n{IMPL}",
        f"plan: First square, then sum.\n{IMPL}",
        f"Plan:\n1. square\n2. sum\n\n{IMPL}",
        f"**Plan:**\n\n```python\nreturn E0\n```\nNo, better:\n\n{IMPL}",
        f"```yaml\nplan: |\n  First\n  impl: |\n    return E0\n{IMPL}```",
        f"```plan\n1. square\n```\n```yaml\n{IMPL}```",
        f"```plan\n1. try\n```python\nreturn E0\n```\n2. no\n```\n\n{IMPL}",
        f"```plan\n1. square\n```\n\n```python\n{PROGRAM}\n```",
        f"<think>plan: hm</think>plan: |\n  x\n{IMPL}",
        f"{IMPL}plan: done",
    ],
)
def test_the_program_is_what_follows_the_plan_and_the_plan_is_no_key_that_was_tried(reply: str) -> None:
    answer = read_reply(STEP, TASK, reply, form=OUTLINED)
    assert (answer.source or "").rstrip() == PROGRAM
    assert answer.dropped == ()


@pytest.mark.parametrize(
    "reply",
    [
        f"plan:\n1. as in\n```python\n{PROGRAM}\n```\n2. but smaller",
        f"plan: |\n  {IMPL.replace(chr(10), chr(10) + '  ')}",
        f"```plan\n{PROGRAM}\n```",
        f"```plan\n{IMPL}",
        f"~~~plan\n```yaml\n{IMPL}```\n~~~",
    ],
)
def test_a_program_that_only_a_plan_quotes_is_none(reply: str) -> None:
    answer = read_reply(STEP, TASK, reply, form=OUTLINED)
    assert answer.source is None
    assert answer.errors[0].given == "a plan without a program after it"


def test_other_keys_are_still_reported_and_without_the_option_the_plan_is_one() -> None:
    reply = f"plan: x\nmargin: 0.5\n{IMPL}"
    assert read_reply(STEP, TASK, reply, form=OUTLINED).dropped == ("margin",)
    assert read_reply(STEP, TASK, reply).dropped == ("plan", "margin")


@pytest.mark.parametrize("shape", TABLE["shapes"], ids=lambda shape: str(shape["name"]))
def test_a_reply_without_a_plan_is_read_as_ever(shape: dict[str, str]) -> None:
    plain = read_reply(STEP, TASK, shape["reply"])
    assert read_reply(STEP, TASK, shape["reply"], form=OUTLINED) == plain


@given(st.lists(st.sampled_from(["plan:", "```plan", "```", "~~~", "```python", "impl: |", "  return E0", "x"])))
def test_no_text_breaks_it(lines: list[str]) -> None:
    read_reply(STEP, TASK, "\n".join(lines), form=OUTLINED)
    read_reply(STEP, TASK, "\n".join(lines), form=BARE)


def test_in_a_bare_reply_only_a_block_is_a_plan() -> None:
    body = 'def body(E0):\n    """plan: x"""\n    return E0\n'
    assert read_reply(STEP, TASK, f"plan: this\n```python\n{body}```", form=BARE) == read_reply(
        STEP, TASK, f"```plan\nthis\n```\n```python\n{body}```", form=BARE
    )


def test_the_plan_is_asked_for_after_the_static_text_in_the_targets_words() -> None:
    plain, planned = (
        compose_prompt(TASK, (), STEP, None, 0, style=PromptStyle(is_outlined=outlined)) for outlined in (False, True)
    )
    system, asked = plain.messages[0].content, planned.messages[0].content
    assert asked.startswith(system)
    assert STEP.outline_words in asked[len(system) :]
    assert set(yaml.safe_load(asked)) - set(yaml.safe_load(system)) == {"plan"}
    assert planned.messages[1:] == plain.messages[1:]
    assert read_prompt(planned.messages) == read_prompt(plain.messages)
    assert "```plan" in request_outline(STEP, "bare")


def test_a_reply_that_the_limit_of_tokens_cut_has_a_finding_of_its_own_unless_it_holds_a_program() -> None:
    cut = read_reply(STEP, TASK, "Let me think about").blame_limit("ran out of tokens after 1024", "Let me think about")
    verdict = cut.make_refusal()
    assert (verdict.stage.name, verdict.errors[0].where) == ("FORMAT", CUT_SHORT)
    assert "no program; it ran out of tokens after 1024" in verdict.errors[0].given
    whole = read_reply(STEP, TASK, IMPL)
    assert whole.blame_limit("ran out of tokens", "") == whole
    assert Message("user", verdict.message).content.count("\n") == 4
