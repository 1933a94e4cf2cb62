"""Tasks in bare Python: the same tasks as in structural IR, runnable, and read back from the text alone."""

from __future__ import annotations

import random
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from opsmith.agents.prompt import PromptStyle, compose_prompt, read_prompt
from opsmith.agents.reply import read_reply
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.suites import load_tasks
from opsmith.targets.protocols import Bare
from opsmith.targets.step import STEP
from opsmith.targets.step.codegen.bare import WORDS, bare_prompt
from opsmith.targets.step.codegen.parts import SEED

TASKS = {task.id: task for suite in ("step26", "step_extra") for task in load_tasks([suite])}
REBINDS = "N = [E0]\nfor x in N:\n    E1 = x\nreturn E1\n"


def test_the_target_offers_it() -> None:
    assert isinstance(STEP, Bare)


def test_one_whole_prompt(golden: Callable[[str, str], None]) -> None:
    shown = [Experience(TASKS["gemm_0"], TASKS["gemm_0"].impl or "", 0.5, 0)]
    prompt = compose_prompt(TASKS["expert_0"], shown, STEP, None, 0, style=PromptStyle("bare"))
    assert [message.role for message in prompt.messages] == ["system", "user"]
    golden("prompt_bare.txt", "\n--- user ---\n".join(message.content for message in prompt.messages))


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.id)
def test_a_task_is_read_back_as_it_was(task: Task) -> None:
    for source in (None, task.impl):
        text, program = STEP.read_bare(STEP.bare_task(task, source)) or ("", "")
        assert STEP.read_task(text, task.id).prompt_text == task.prompt_text
        assert program == source or (program or "").strip("\n") == (source or "").strip("\n")


def test_the_base_prompts_say_the_same() -> None:
    structural = read_prompt([Message("system", STEP.base_prompt("proposer"))]).examples
    bare = read_prompt([Message("system", STEP.bare_prompt())], STEP).examples
    assert len(bare) >= 15
    assert [program for _, program in bare] == [program for _, program in structural]
    wanted = [STEP.read_task(text, "example").prompt_text for text, _ in structural]
    assert [STEP.read_task(text, "example").prompt_text for text, _ in bare] == wanted


def test_the_bare_base_prompt_does_not_speak_of_yaml() -> None:
    text = STEP.bare_prompt()
    assert all(words not in text for words in ("YAML", "impl", "data_transform", "dtype must", "examples:"))
    assert all(instead in text for instead in WORDS.values())


def test_a_structural_prompt_that_changed_under_it_is_noticed() -> None:
    with pytest.raises(AssertionError, match="A fn without init maps"):
        bare_prompt(STEP.base_prompt("proposer").replace("A fn without init maps", "A stateless fn maps"))


def test_what_only_the_verifier_needs_is_not_shown() -> None:
    text = STEP.bare_task(TASKS["expert_0"], None)
    assert "SHAPE" not in text
    assert "all tokens to expert 0" not in text  # of the task's `cases`


@pytest.mark.parametrize("name", ["attn_0", "expert_0", "norm_0", "etoe_0", "index_0", "votes_0"])
def test_the_script_of_a_right_program_passes(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"test_{name}.py"
    path.write_text(STEP.bare_task(TASKS[name], TASKS[name].impl))
    runpy.run_path(str(path))["test"]()


def test_the_script_of_a_wrong_program_fails(tmp_path: Path) -> None:
    task = TASKS["gemm_0"]
    wrong = STEP.bare_task(task, task.impl).replace(f"manual_seed({SEED})", "manual_seed(1)")
    path = tmp_path / "test_wrong.py"
    path.write_text(wrong.replace("step.Accum", "step.Scan"))
    with pytest.raises(AssertionError):
        runpy.run_path(str(path))["test"]()


def test_a_task_with_all_that_is_awkward_is_read_back() -> None:
    task = STEP.read_task(
        '''
global: |
  E_value = 3
  ctx[E] = E_value
  eps = 1e-6  # (a bracket in a comment
inputs:
- {name: E0, dtype: "Buffer(fp16, [D/2, 2*K])", dims: [N*K, 1], data_gen: binary}
- {name: E1, dtype: int64, dims: [N*K, 1], data_gen: randint, min: 2, max: 5}
- {name: E2, dtype: "Multihot(fp32, E)", dims: [N*K, 1], min: 0, max: 2}
parameters:
- {name: W, dtype: "Buffer(fp32, [K])", dims: [D/2, M], data_gen: torch.ones}
fns:
- name: max
  func_name: fn_max
  apply: |
    def larger(a, b):
        return torch.maximum(a, b)

    text = """
        kept as it is
    """
    return [larger(state[0], input[0])]  # done
    # at the end
  init: [-inf]
  input_dtype: fp32
  output_dtype: fp32
- {name: Two, func_name: fn_two, apply: "return [input[0], input[0]]", input_dtype: fp32, output_dtype: [fp32, fp32]}
outputs:
- name: S0
  dtype: [fp32, int64]
  dims: [1]
  data_transform:
  - |
    # a comment
    x = input_data['E0'].float()
    D = 2  # a name of the script
    x.sum(
        0,  # over all
    )[0, 0, 0].reshape(1)  # one (number
  - |
    y = input_data['E1'].sum()
    S0 = y
  rtol: 0.001
''',
        "awkward",
    )
    text, _ = STEP.read_bare(STEP.bare_task(task, None)) or ("", "")
    assert STEP.read_task(text, "awkward").prompt_text == task.prompt_text


@pytest.mark.parametrize("seed", range(20))
def test_a_text_that_is_nearly_a_task_is_read_or_not_but_never_raises(seed: int) -> None:
    rng = random.Random(seed)
    text = STEP.bare_task(rng.choice(list(TASKS.values())), None)
    for _ in range(5):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        spoiled = "\n".join([*lines[:at], *([] if seed % 2 else [lines[at][:: rng.choice((-1, 2))]]), *lines[at + 1 :]])
        found = STEP.read_bare(spoiled)
        assert found is None or STEP.read_task(found[0], "x").target == "step"


def test_a_reply_is_a_function_a_script_or_a_program() -> None:
    task = TASKS["gemm_0"]
    assert task.impl is not None
    replies = [
        f"Here:\n```python\n{STEP.bare_answer(task, task.impl)}```\n",
        STEP.bare_answer(task, task.impl),
        f"```python\n{STEP.bare_task(task, task.impl)}```\nIt passes.",
        f"```\n{task.impl}```",
    ]
    for reply in replies:
        found = read_reply(STEP, task, reply).source
        assert found is not None
        assert found.strip("\n") == task.impl.strip("\n")


def test_a_function_that_binds_names_of_the_script_anew_is_read_too() -> None:
    task = TASKS["norm_0"]
    answer = STEP.bare_answer(task, REBINDS)
    assert answer.startswith("def body(E0, *, N=N):\n")
    assert (read_reply(STEP, task, answer).source or "") + "\n" == REBINDS
    assert read_reply(STEP, task, answer.replace("N=N", "N=3")).source is None


def test_the_last_of_several_functions_counts_and_one_with_other_parameters_does_not() -> None:
    task = TASKS["norm_0"]
    first, last = (f"def body(E0):\n    return {name}\n" for name in ("E0", "E1"))
    assert read_reply(STEP, task, first + last).source == "return E1"
    assert read_reply(STEP, task, "def body(E0, E1):\n    return E0\n").source is None
