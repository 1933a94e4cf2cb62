"""Splits are found, checked and changed in confined workers: `Pool.plan`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opsmith.api import load_task
from opsmith.errors import UsageError
from opsmith.judging.plans import read_plans
from opsmith.judging.pool import Pool
from opsmith.records import Task
from opsmith.splits import Split
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


def test_code_of_a_split_touches_no_verdict_neither_on_the_task_nor_on_others():
    """A model may have written it: what it changes in a process is gone before the next verdict."""
    forge = (
        "import opsmith.judging.worker as w\n"
        "from opsmith.judging.verifier import verify\n"
        "from dataclasses import replace\n"
        "w.verify = lambda task, source: replace(verify(task, task.impl), candidate=verify(task, source).candidate)\n"
    )
    task, other = load_task("attn_0"), load_task("gemm_0")
    with Pool(workers=1) as pool:
        assert pool.submit(task, task.impl).result().passed  # its worker is idle now
        (split,) = pool.plan(task, "list", most=1).splits
        first = split.nodes[0]
        hostile = replace(split, nodes=(replace(first, code=forge + first.code), *split.nodes[1:]))
        pool.plan(task, "check", hostile)
        pool.plan(task, "renegotiate", hostile, node=first.name)
        assert _hear_code(pool, task, split, "raise ValueError('x' * 10**6)").count("x") < 1000
        peeping = "import gc\nraise ValueError([t.impl for t in gc.get_objects() if type(t).__name__ == 'Task'])"
        assert "ValueError: [None]" in _hear_code(pool, task, split, peeping)
        assert not pool.submit(task, "return Q").result().passed
        assert not pool.submit(other, "return A").result().passed


def _hear_code(pool: Pool, task: Task, split: Split, code: str) -> str:
    """What comes back of a split whose first node holds this code too."""
    first, *others = split.nodes
    changed = replace(split, nodes=(replace(first, code=f"{code}\n{first.code}"), *others))
    return "".join(finding.block() for finding in pool.plan(task, "check", changed).findings)


@pytest.mark.parametrize("name", ["../../etc/x", "a b", "a\nb", "é", "", "x" * 1000, 7])
def test_an_answer_with_names_that_are_none_is_no_answer(name):
    node = {"name": name, "takes": ["E0"], "gives": [], "code": "", "fns": []}
    with pytest.raises(ValueError, match="expected an identifier"):
        read_plans({"splits": [{"nodes": [node], "outputs": []}], "findings": [], "reason": ""})
