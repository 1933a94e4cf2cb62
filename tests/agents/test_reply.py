"""Replies: a program is found wherever a model puts it, nothing else comes from a reply, and no text can break it."""

import time
from pathlib import Path

import pytest
import yaml
from clocks import lasts_at_most, stretch_bound
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opsmith.agents.fences import list_fenced_blocks
from opsmith.agents.reply import MAX_REPLY, read_reply
from opsmith.records import Boundary, Outcome, Stage
from opsmith.targets.step import STEP

TABLE = yaml.safe_load((Path(__file__).parent / "reply_shapes.yaml").read_text(encoding="utf-8"))
SHAPES = {shape["name"]: shape for shape in TABLE["shapes"]}
TASK = STEP.read_task(TABLE["task"], "row_energy")


def squeezed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_reply_of_each_shape_is_read(name: str) -> None:
    shape = SHAPES[name]
    found = read_reply(STEP, TASK, shape["reply"])
    if "refused" in shape:
        assert found.source is None
        assert [error.kind for error in found.errors] == ["FORMAT"]
        assert shape["refused"] in found.errors[0].given
    else:
        assert squeezed(found.source or "") == squeezed(shape.get("source", TABLE["program"]))
        assert found.dropped == tuple(shape.get("dropped", ()))
        assert found.errors == ()


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(SHAPES) == len(TABLE["shapes"]) >= 30


def test_a_reply_without_a_program_is_a_refused_sample() -> None:
    verdict = read_reply(STEP, TASK, "no").make_refusal(STEP.verifier)
    assert (verdict.stage, verdict.outcome, verdict.charged_to) == (Stage.FORMAT, Outcome.REFUSED, Boundary.CANDIDATE)
    assert "answer with `impl: |`" in verdict.message


def test_the_text_of_a_program_is_not_edited() -> None:
    program = "# a note\n\n\nE1 =   step.Identity( ).apply( E0 )   \nreturn E1"
    assert read_reply(STEP, TASK, f"```python\n{program}\n```").source == program


def test_other_keys_may_hold_the_program() -> None:
    answer = "input_impl: |\n  return E1\noutput_impl: |\n  return E0\n"
    found = read_reply(STEP, TASK, answer, ("output_impl", "impl"))
    assert (found.source, found.dropped) == ("return E0", ("input_impl",))


def test_a_fence_inside_a_longer_fence_is_content() -> None:
    assert list_fenced_blocks("````\n```\nx\n```\n````\n~~~\ny") == ["```\nx\n```\n", "y"]


HOSTILE = {
    "ten megabytes": "impl: |\n" + "  x = 1\n" * 1_250_000,
    "null bytes": "impl: |\n  \0return E0\n",
    "an alias bomb": "a: &a [x, x]\n" + "".join(f"b{i}: [*a, *a]\n" for i in range(5000)) + "impl: *a\n",
    "deep flow nesting": "impl: " + "[" * 500_000,
    "deep block nesting": "".join(" " * i + "- \n" for i in range(900)) + "impl: x",
    "deep Python nesting": "impl:\n" + "(" * 60_000,
    "many keys": "".join(f"k{i}: v\n" for i in range(90_000)) + "impl: |\n  return E0\n",
    "many fences": "```\nimpl: |\n x = 1\n```\n" * 45_000,
    "many impl lines": "impl:\n(((\n" * 90_000,
    "many paragraphs": "x = 1\n\n" * 130_000,
    "one long line": "*" * 1_000_000 + "impl",
    "a custom tag": "impl: !!python/object/apply:os.system ['true']\n",
    "a byte order mark": "\ufeffimpl: |\n  return E0\n",
    "lone surrogates": "impl: |\n  return E0 # \ud800\n",
    "right-to-left text": "impl: |\n  return E0  # \u202e\u0645\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_costs_little(name: str) -> None:
    text = HOSTILE[name]
    with lasts_at_most(6.0):
        found = read_reply(STEP, TASK, text)
    assert (found.source is None) == bool(found.errors)
    assert len(str(found.errors)) < 1000
    assert len(text) <= MAX_REPLY or found.source is None


MARKUP = ["impl:", "impl: >\n", "```", "~~~", "yaml", "<think>", "</think>", "- ", "{", "[", '"', "'", ": ", "? ", "#"]
TEXT = [
    "&a ",
    "*a",
    "!!str ",
    "---\n",
    "task:\n",
    "return E0",
    "def body(E0):\n",
    "  ",
    "\t",
    "\n",
    "\r",
    "\\",
    "\0",
    "\u2028",
]
FRAGMENTS = st.sampled_from([*MARKUP, *TEXT])


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=30).map("".join)))
@example("? [impl, {impl: x}]\n: impl\n")
def test_no_text_makes_it_raise(text: str) -> None:
    found = read_reply(STEP, TASK, text)
    assert (found.source is None) == bool(found.errors)


def test_a_usual_reply_is_read_quickly() -> None:
    text = SHAPES["YAML in a yaml fence"]["reply"]
    read_reply(STEP, TASK, text)
    best = min(_seconds(text) for _ in range(50))
    assert best < stretch_bound(0.003)  # 0.2 ms on the machine it was written on


def _seconds(text: str) -> float:
    start = time.perf_counter()
    read_reply(STEP, TASK, text)
    return time.perf_counter() - start
