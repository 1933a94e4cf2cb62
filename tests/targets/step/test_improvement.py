"""What the agents of an optimisation round are told of STeP; its example is right and cheaper by the cost model."""

import pytest
import yaml

from opsmith.agents.prompt import read_prompt
from opsmith.judging.verifier import verify
from opsmith.models import Message
from opsmith.models.tokens import estimate_tokens
from opsmith.targets.protocols import Improvable
from opsmith.targets.step import STEP
from opsmith.targets.step.cost import cost_of
from opsmith.targets.step.cost.model import COMPUTE_BANDWIDTH, OFF_CHIP_BANDWIDTH, ON_CHIP_BANDWIDTH
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.ops import KEYWORDS

PROMPT = STEP.improvement_prompt(True)
EXAMPLE = yaml.safe_load(PROMPT)["example"]
STATEMENT = {key: value for key, value in EXAMPLE.items() if key not in {"before", "suggestion", "after"}}
TASK = STEP.read_task(yaml.safe_dump(STATEMENT, sort_keys=False), "example")


@pytest.mark.parametrize("side", ["before", "after"])
def test_both_programs_of_the_example_are_right(side):
    verdict = verify(TASK, EXAMPLE[side])
    assert verdict.passed, verdict.message


def test_the_better_one_costs_as_little_as_its_suggestion_says():
    before, after = (cost_of(read_spec(TASK.text), EXAMPLE[side]) for side in ("before", "after"))
    assert before["cycles"] / after["cycles"] > 4
    assert "cycles about 4" in EXAMPLE["suggestion"]["effect"]
    assert all(before[name] == after[name] for name in ("on_chip_bytes", "off_chip_bytes"))


def test_the_texts_are_short_and_teach_no_demonstration():
    assert isinstance(STEP, Improvable)
    assert all(estimate_tokens(text) <= 3000 for text in (PROMPT, STEP.describe_platform()))
    assert not read_prompt([Message("system", PROMPT)]).examples
    assert "example" not in yaml.safe_load(STEP.improvement_prompt(False))


@pytest.mark.parametrize("name", KEYWORDS)
def test_every_operation_is_described_to_both_agents(name):
    assert name in PROMPT
    assert name in STEP.describe_platform()


def test_the_platform_states_the_constants_of_the_cost_model():
    text = STEP.describe_platform()
    assert f"off-chip bytes / {OFF_CHIP_BANDWIDTH}" in text
    assert f"FLOPs of one call / {COMPUTE_BANDWIDTH}" in text
    assert f"read per element / {ON_CHIP_BANDWIDTH}" in text
