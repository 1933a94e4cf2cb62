"""One problem has one name, in whatever language it is asked for; what changes the problem changes the name."""

from dataclasses import replace

import pytest

from opsmith.api import load_task
from opsmith.records import Task
from opsmith.targets.protocols import Portable
from opsmith.targets.step import STEP

FILE = """
global: |
  E_value = 3
  ctx[E] = E_value
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
  - {name: E1, dtype: "Multihot(fp32, E)", dims: [M], min: 0, max: 2}
fns:
  - {name: Two, func_name: fn_two, input_dtype: fp32, output_dtype: fp32, apply: "return [2 * input[0]]"}
outputs:
  - {name: S0, dtype: fp32, dims: [M, N], data_transform: ["2 * input_data['E0']"]}
shapes: {wide: {M: 40}}
margins: ["input_data['E0'].abs()"]
cases: ["input_data['E0'].sum() == 0"]
impl: return step.Map(fn=fn_two).apply(E0)
"""


def read(*changes: tuple[str, str], task_id: str = "double_0") -> Task:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return STEP.read_task(text, task_id)


def name(*changes: tuple[str, str]) -> str:
    return STEP.problem_digest(read(*changes))


def test_bundled_problems_keep_the_names_that_stores_know_them_by() -> None:
    assert isinstance(STEP, Portable)
    digests = {task: STEP.problem_digest(load_task(task)) for task in ("attn_1", "gemm_2", "shares_0")}
    assert digests == {
        "attn_1": "8bf771d6264f2d7e8622164518dce868e2c7bc9d585f7a72f6e4c3487eaa3dd2",
        "gemm_2": "8c74817390c9b3e13e6b84a357da88fae17390960b4210daa91ad227440f5603",
        "shares_0": "426895a1376961aab170a3b6e44d8304bba90cc044f2117b41ab8b7ef57a933e",
    }


@pytest.mark.parametrize(
    "change",
    [
        ("[2 * input[0]]", "[input[0] + input[0]]"),  # how the hardware does it
        ("name: Two, func_name: fn_two", "name: Twice, func_name: fn_twice"),
        ("dtype: fp32, dims: [M, N], data_gen", 'dtype: "Buffer(fp32, [M])", dims: [N], data_gen'),  # how it streams
        ("dtype: fp32, dims: [M, N], data_transform", 'dtype: "Buffer(fp32, [M])", dims: [N], data_transform'),
        ("impl: return step.Map(fn=fn_two).apply(E0)", ""),
        ("impl:", "author: somebody\nimpl:"),  # a key without meaning
        ("inputs:", "# a comment\ninputs:"),
    ],
)
def test_what_is_the_languages_own_is_no_part_of_the_problem(change: tuple[str, str]) -> None:
    assert name(change) == name()


@pytest.mark.parametrize(
    "change",
    [
        ("name: E0", "name: E2"),
        ("dtype: fp32, dims: [M, N], data_gen: torch.randn", "dtype: fp16, dims: [M, N], data_gen: torch.randn"),
        ("dims: [M, N], data_gen", "dims: [N, M], data_gen"),
        ("torch.randn", "torch.rand"),
        ("max: 2", "max: 1"),
        ("min: 0", "min: 1"),
        ("E_value = 3", "E_value = 4"),
        ("2 * input_data['E0']", "input_data['E0'] * 2"),
        ("data_transform", "rtol: 0.0, data_transform"),
        ("M: 40", "M: 41"),
        ("wide", "broad"),
        (".abs()", ".square()"),
        ("== 0", "== 1"),
        ("cases: [", "cases: [\"input_data['E0'].sum() == 2\", "),
    ],
)
def test_what_is_asked_for_makes_the_problem(change: tuple[str, str]) -> None:
    assert name(change) != name()


def test_tasks_keep_their_own_names() -> None:
    changed = read(("[2 * input[0]]", "[input[0] + input[0]]"))
    assert changed.digest != read().digest
    assert STEP.problem_digest(read(task_id="other_0")) == name()
    assert STEP.problem_digest(replace(read(), impl=None, path="x", group="y")) == name()
    assert load_task("attn_1").digest == "13dbbe7837111e5ce76b365e925d509c3ef08f5a9724a3f6c3b419b1f83a5bec"
