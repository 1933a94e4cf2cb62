"""Prompts: the static text first, task texts shown as they are, what does not fit left out easiest first, and said."""

from collections.abc import Callable

import pytest
import yaml

from opsmith.agents.prompt import compose_prompt, format_yaml_block, read_prompt
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.targets.step import STEP

ROW_ENERGY = STEP.read_task(
    """
test_name: not shown
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}
fns:
  - name: SumSq
    func_name: fn_sumsq
    apply: |
      x = input[0]

      return [state[0] + x * x]
    init: [0]
    input_dtype: fp32
    output_dtype: fp32
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["(input_data['E0'] ** 2).sum(1)"]}
impl: |
  return E0
""",
    "row_energy",
)
TWICE = STEP.read_task(
    """
inputs:
  - {name: E0, dtype: "Buffer(fp32, [D])", dims: [N], data_gen: torch.randn}
outputs:
  - {name: S0, dtype: fp32, dims: [D, M, N], data_transform: ["input_data['E0'].unsqueeze(1).repeat(1, M_value, 1)"]}
""",
    "twice",
)
REPEAT = "E1 = step.Repeat(n=M).apply(E0)  # é: {dims: [M, N]}\nE2 = step.Streamify().apply(E1)\nreturn E2\n"
SUM = "E1 = step.Accum(fn=fn_sumsq, b=1).apply(E0)\nreturn E1\n"


def experience(task: Task, source: str, rate: float) -> Experience:
    return Experience(task, source, rate, round=0)


def test_the_prompt_of_a_round(golden: Callable[[str, str], None]) -> None:
    demonstrations = [experience(TWICE, REPEAT, 0.1), experience(ROW_ENERGY, SUM, 0.5)]
    prompt = compose_prompt(ROW_ENERGY, demonstrations, STEP, None, 1024)
    system, user = prompt.messages
    assert (system.role, user.role) == ("system", "user")
    assert system.content == STEP.base_prompt("proposer")
    golden("prompt_user_message.yaml", user.content)


def test_without_demonstrations_there_is_no_examples_key() -> None:
    prompt = compose_prompt(ROW_ENERGY, [], STEP, None, 0)
    assert list(yaml.safe_load(prompt.messages[1].content)) == ["task"]
    assert "impl" not in yaml.safe_load(prompt.messages[1].content)["task"]


def test_what_is_shown_is_the_canonical_text() -> None:
    user = compose_prompt(ROW_ENERGY, [experience(TWICE, REPEAT, 0.1)], STEP, None, 0).messages[1].content
    data = yaml.safe_load(user)
    assert data["task"] == yaml.safe_load(ROW_ENERGY.prompt_text)
    assert data["examples"] == [{**yaml.safe_load(TWICE.prompt_text), "impl": REPEAT}]
    assert [line.strip() for line in ROW_ENERGY.prompt_text.splitlines()] == [
        line.strip() for line in user.split("task:\n")[1].splitlines()
    ]


def test_the_same_round_gives_the_same_bytes() -> None:
    demonstrations = [experience(TWICE, REPEAT, 0.1), experience(ROW_ENERGY, SUM, 0.5)]
    assert compose_prompt(TWICE, demonstrations, STEP, 5000, 64) == compose_prompt(
        TWICE, demonstrations, STEP, 5000, 64
    )


def test_demonstrations_that_overflow_are_left_out_easiest_first() -> None:
    hard, middle, easy = (experience(TWICE, REPEAT, rate) for rate in (0.1, 0.4, 0.9))
    whole = compose_prompt(ROW_ENERGY, [hard, middle, easy], STEP, None, 100)
    bare = compose_prompt(ROW_ENERGY, [], STEP, None, 100)
    one = (whole.input_tokens - bare.input_tokens) // 3 - 1  # tokens of one demonstration, rounded down
    prompts = [
        compose_prompt(ROW_ENERGY, [hard, middle, easy], STEP, whole.input_tokens + 100 - one * k, 100)
        for k in range(4)
    ]
    assert [prompt.demonstrations_used for prompt in prompts] == [(hard, middle, easy), (hard, middle), (hard,), ()]
    assert prompts[2].left_out == (easy, middle)
    assert all(prompt.input_tokens + 100 <= whole.input_tokens + 100 - one * k for k, prompt in enumerate(prompts))


def test_of_equally_easy_demonstrations_the_last_goes_first() -> None:
    first, second = experience(TWICE, REPEAT, 0.5), experience(ROW_ENERGY, SUM, 0.5)
    whole = compose_prompt(ROW_ENERGY, [first, second], STEP, None, 0)
    assert compose_prompt(ROW_ENERGY, [first, second], STEP, whole.input_tokens - 1, 0).left_out == (second,)


def test_a_window_that_is_too_small_for_the_task_leaves_the_task_whole() -> None:
    prompt = compose_prompt(ROW_ENERGY, [experience(TWICE, REPEAT, 0.5)], STEP, 10, 0)
    assert prompt.demonstrations_used == ()
    assert "fn_sumsq" in prompt.messages[1].content


def test_a_prompt_can_be_read_back_from_its_text_alone() -> None:
    demonstrations = [experience(TWICE, REPEAT, 0.1), experience(ROW_ENERGY, SUM, 0.5)]
    parts = read_prompt(compose_prompt(ROW_ENERGY, demonstrations, STEP, None, 0).messages)
    base = read_prompt([Message("system", STEP.base_prompt("proposer"))]).examples
    assert len(base) >= 15
    assert parts.examples[: len(base)] == base
    shown = parts.examples[len(base) :]
    assert [(STEP.read_task(text, "x").text, impl) for text, impl in shown] == [
        (TWICE.prompt_text, REPEAT),
        (ROW_ENERGY.prompt_text, SUM),
    ]
    assert STEP.read_task(parts.task, "x").text == ROW_ENERGY.prompt_text


def test_the_base_prompts_examples_are_tasks_of_the_target() -> None:
    for text, program in read_prompt([Message("system", STEP.base_prompt("proposer"))]).examples:
        assert STEP.check_program(STEP.read_task(text, "example"), program).errors == ()


def test_messages_that_are_no_prompt_hold_nothing() -> None:
    assert read_prompt([Message("system", "be: [kind"), Message("user", "hello")]) == ([], "")


@pytest.mark.parametrize(
    "program",
    [
        "return E0",
        "  # a comment that stands further right\nreturn E0",
        "return (\n    E0\n)\n\n\n",
        "x = [  # 'quotes' \"both\"\n\tE0,\n]\nreturn x  # {a: b} - ? ! % @ ` |",
        "return E0  # \u2028 \x07 \x85 \ufeff",
    ],
)
def test_a_program_survives_its_block(program: str) -> None:
    text = yaml.safe_load(f"impl: {format_yaml_block(program)}\n")["impl"]
    assert text.strip("\n") == program.strip("\n")


def test_of_ranked_demonstrations_the_last_goes_first() -> None:
    nearest, farthest = experience(TWICE, REPEAT, 0.9), experience(ROW_ENERGY, SUM, 0.1)
    whole = compose_prompt(ROW_ENERGY, [nearest, farthest], STEP, None, 0)
    assert compose_prompt(ROW_ENERGY, [nearest, farthest], STEP, whole.input_tokens - 1, 0, ranked=True).left_out == (
        farthest,
    )
    assert compose_prompt(ROW_ENERGY, [nearest, farthest], STEP, whole.input_tokens - 1, 0).left_out == (nearest,)
