"""Splits are found, checked and changed in confined workers: `Pool.plan`."""

from __future__ import annotations

import pytest

from opsmith.errors import UsageError
from opsmith.records import Task
from opsmith.targets.step import STEP

TEXT = """
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
fns:
  - {name: Exp, func_name: fn_exp, apply: "return [torch.exp(input[0])]", input_dtype: fp32, output_dtype: fp32}
  - {name: Twice, func_name: fn_twice, apply: "return [input[0] * 2]", input_dtype: fp32, output_dtype: fp32}
  - {name: Tanh, func_name: fn_tanh, apply: "return [torch.tanh(input[0])]", input_dtype: fp32, output_dtype: fp32}
  - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32, output_dtype: fp32}
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["torch.tanh(input_data['E0'].exp() * 2).sum(1)"]}
"""


def test_a_pool_finds_splits_checks_them_and_says_why_there_is_none(shared_pool):
    task = STEP.read_task(TEXT, "chain_0")
    answer = shared_pool.plan(task, "list", most=1)
    (split,) = answer.splits
    assert [border.name for border in split.nodes[-1].gives] == ["S0"]
    assert split == next(STEP.list_splits(task))
    assert shared_pool.plan(task, "check", split).findings == ()
    (changed,) = shared_pool.plan(task, "renegotiate", split, node=split.nodes[0].name).splits
    assert changed != split
    single = STEP.read_task(
        TEXT.replace("torch.tanh(input_data['E0'].exp() * 2).sum(1)", "input_data['E0'].sum(1)"), "s_0"
    )
    assert shared_pool.plan(single, "list").splits == ()
    assert "single operation" in shared_pool.plan(single, "list").reason


def test_a_fault_of_the_author_is_a_reason_in_words(shared_pool):
    broken = STEP.read_task(TEXT.replace(".exp() * 2", ".exp() * absent"), "broken_0")
    answer = shared_pool.plan(broken, "list")
    assert answer.splits == ()
    assert "absent" in answer.reason


def test_a_target_that_cannot_split_tasks_is_named(shared_pool):
    with pytest.raises(UsageError, match="cannot split tasks"):
        shared_pool.plan(Task("problem_0", "problem", "problem: x"), "list")
