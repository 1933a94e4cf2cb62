"""What the agents of an optimisation round are told of C: short, of this machine, with a pair that is as a task is."""

import pytest
import yaml

from opsmith.agents.prompt import read_prompt
from opsmith.api import load_task
from opsmith.models import Message
from opsmith.models.tokens import estimate_tokens
from opsmith.targets import get_target
from opsmith.targets.c.improvement import write_improvement, write_platform
from opsmith.targets.c.prompt import describe_isa
from opsmith.targets.native.flags import Isa
from opsmith.targets.protocols import Improvable

NAMES = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "armv8-a+fp16")
MOST_TOKENS = 3000


@pytest.mark.parametrize("name", NAMES)
def test_the_texts_are_short_and_name_the_processor(name):
    for text in (write_platform(Isa(name)), write_improvement(Isa(name), True)):
        assert estimate_tokens(text) <= MOST_TOKENS
        assert describe_isa(Isa(name)) in text
        assert f"-march={name}" in text


def test_the_example_is_a_pair_with_a_suggestion_and_no_demonstration():
    text = write_improvement(Isa("x86-64-v3"), True)
    example = yaml.safe_load(text)["example"]
    shown = yaml.safe_load(load_task("softmax", "c").shown)
    assert example.keys() == {*shown, "before", "suggestion", "after"}
    assert list(example["suggestion"]) == ["what", "where", "why", "effect"]
    assert not any(get_target("c").check_source(example[key]) for key in ("before", "after"))
    assert not read_prompt([Message("system", text)]).examples


def test_without_an_example_it_is_the_same_text_but_for_that():
    text, shorter = (write_improvement(Isa("x86-64-v3"), has_example) for has_example in (True, False))
    assert text.startswith(shorter)
    assert "example" not in yaml.safe_load(shorter)


def test_c_can_be_improved():
    assert isinstance(get_target("c"), Improvable)
