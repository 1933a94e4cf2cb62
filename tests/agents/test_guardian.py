"""Guardians: what they return is a new candidate with a parent."""

import pytest
import yaml

from opsmith.agents.guardian import read_guarded, repair_statically, request_guarding
from opsmith.errors import UsageError
from opsmith.records import Candidate
from opsmith.targets.step import STEP, StepTarget

TASK = STEP.read_task(
    """
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}
fns:
  - {name: Add, func_name: fn_add, apply: "return [input[0] + input[1]]", input_dtype: [fp32, fp32], output_dtype: fp32}
outputs:
  - {name: S0, dtype: fp32, dims: [M, N], data_transform: ["2 * input_data['E0']"]}
""",
    "double",
)
WRONG = Candidate("E1 = step.Map(fn=fn_add).apply((E0, E0))\nreturn E1\n")
RIGHT = Candidate("A, B = step.Copy().apply(E0)\nE1 = step.Map(fn=fn_add).apply((A, B))\nreturn E1\n")


def test_the_static_guardian_repairs_an_affine_error() -> None:
    guarded = repair_statically(STEP, TASK, WRONG)
    assert guarded.candidate.parent == WRONG.id
    assert not STEP.check_program(TASK, guarded.candidate.source).errors


@pytest.mark.parametrize("source", [RIGHT.source, "return E5\n", "E1 = step.Map(fn=fn_add).apply(E0)\nreturn E1\n"])
def test_the_static_guardian_touches_nothing_else(source: str) -> None:
    candidate = Candidate(source)
    assert repair_statically(STEP, TASK, candidate).candidate is candidate


def test_the_second_model_call_shows_the_program_alone() -> None:
    system, user = request_guarding(STEP, WRONG)
    assert system.content == STEP.base_prompt("guardian")
    assert yaml.safe_load(user.content) == {"input_impl": WRONG.source}


def test_a_target_without_a_guardian_says_so() -> None:
    class Plain(StepTarget):
        def base_prompt(self, role: str) -> str | None:
            return None

    with pytest.raises(UsageError, match="no guardian prompt"):
        request_guarding(Plain(), WRONG)


@pytest.mark.parametrize("key", ["output_impl", "impl"])
def test_an_answer_is_a_new_candidate(key: str) -> None:
    answer = f"```yaml\n{key}: |\n" + "".join(f"  {line}\n" for line in RIGHT.source.splitlines()) + "```"
    guarded = read_guarded(STEP, TASK, WRONG, answer)
    assert guarded.candidate == Candidate(guarded.candidate.source, parent=WRONG.id)
    assert guarded.candidate.source.strip() == RIGHT.source.strip()


def test_an_answer_that_repeats_the_program_leaves_it_alone() -> None:
    guarded = read_guarded(STEP, TASK, RIGHT, f"```python\n{RIGHT.source}```")
    assert guarded.candidate is RIGHT


def test_an_answer_without_a_program_leaves_it_alone_and_says_why() -> None:
    guarded = read_guarded(STEP, TASK, RIGHT, "It is fine.")
    assert guarded.candidate is RIGHT
    assert guarded.errors[0].kind == "FORMAT"
