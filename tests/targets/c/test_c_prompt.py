"""What a model is told of C: short enough, of this machine, with a pair that is as a task is shown."""

import pytest
import yaml

from opsmith.agents.prompt import read_prompt
from opsmith.api import load_task
from opsmith.models import Message
from opsmith.models.tokens import estimate_tokens
from opsmith.suites import SUITES, task_files
from opsmith.targets import get_target
from opsmith.targets.c.prompt import describe_isa, write_prompt
from opsmith.targets.c.source import ATTRIBUTES, HEADERS
from opsmith.targets.native.flags import Isa
from opsmith.targets.native.prompt_texts import EXAMPLE
from opsmith.targets.protocols import GUARDIAN, PROPOSER

NAMES = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "armv8-a+fp16")
MOST_TOKENS = 3000


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_short_and_names_the_processor(name):
    prompt = write_prompt(Isa(name))
    assert estimate_tokens(prompt) <= MOST_TOKENS
    assert f"Processor: {describe_isa(Isa(name))}." in prompt
    assert f"-march={name}" in prompt


def test_it_is_one_mapping_whose_example_is_a_pair_of_no_suite():
    prompt = write_prompt(Isa("x86-64-v3"))
    ((shown, program),) = read_prompt([Message("system", prompt)]).examples
    assert yaml.safe_load(shown).keys() == yaml.safe_load(load_task("softmax", "c").shown).keys()
    assert not get_target("c").check_source(program)
    assert EXAMPLE not in {path.stem for suite in SUITES for path in task_files(suite)}


@pytest.mark.parametrize("name", HEADERS)
def test_every_header_that_is_allowed_is_named(name):
    assert f" {name.removesuffix('.h')} " in write_prompt(Isa("x86-64-v3")).replace("\n", " ")


@pytest.mark.parametrize("words", ["strided", "in place", 'simd("notinbranch")', "threads", "bf16_to_float"])
def test_it_says_what_a_program_may_rely_on(words):
    assert words in write_prompt(Isa("x86-64-v3"))
    assert "simd" in ATTRIBUTES


def test_nobody_but_the_proposer_is_asked_about_c():
    target = get_target("c")
    assert target.base_prompt(PROPOSER)
    assert target.base_prompt(GUARDIAN) is None
