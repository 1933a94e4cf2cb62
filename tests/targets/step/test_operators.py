"""Operators of a library in plain torch: equal to the reference, readable, refusals, and texts that stay texts."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile

from opsmith.errors import UsageError
from opsmith.problems.drawing import draw_data
from opsmith.records import Task
from opsmith.suites import load_tasks
from opsmith.targets.literals import write_literal
from opsmith.targets.programs import Solved
from opsmith.targets.protocols import Packaged
from opsmith.targets.step import STEP, spec_of
from opsmith.targets.step.library.package import VENDORED, write_module
from opsmith.targets.step.library.proof import find_failures, plan_trials
from opsmith.targets.step.library.translation import find_differences
from opsmith.targets.vendoring import imports_of, vendor_modules

TASKS = {task.id: task for suite in ("step26", "step_extra") for task in load_tasks([suite])}


@lru_cache
def find_plan(task: Task, program: str, name: str) -> str:
    return json.dumps(STEP.plan_translation(task, program, name))


def solve(task: Task, source: str | None = None, **facts: str) -> Solved:
    """An operator as an export has it: its plan has gone through JSON."""
    program = source or task.impl or ""
    name = task.id if task.id.isidentifier() else "operator"
    plan = json.loads(find_plan(task, program, name))
    return Solved(name, task, program, facts, translation=plan)


def function_of(solved: Solved) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "operator_module"}
    exec(compile(write_module(solved), solved.name, "exec"), names)
    function: Callable[..., Any] = names[solved.name]
    return function


@pytest.mark.parametrize("name", TASKS)
def test_every_bundled_program_is_equal_to_its_reference_in_plain_torch(name: str) -> None:
    """Whose plan says so, after all trials, in both precisions; exported tests run them again."""
    text = write_module(solve(TASKS[name]))
    assert set(imports_of(text)) <= {"__future__", "__future__.annotations", "torch", "torch.Tensor"}
    assert max(len(line) for line in text.split("\n")) < 400


def test_a_size_that_no_shape_determines_can_be_given() -> None:
    blocks = function_of(solve(TASKS["blocks_0"]))
    rows = torch.arange(12.0).reshape(1, 12)
    assert blocks(rows, M=4).tolist() == [[6, 22, 38]]
    assert blocks(rows, M=6).tolist() == [[15, 51]]
    with pytest.raises(ValueError, match=r"E0: given shape \(1, 12\); expected \(K, M\*N\) = \(1, 10\)"):
        blocks(rows)  # the task's own M is 5
    with pytest.raises(ValueError, match="M: given 0; expected a size"):
        blocks(rows, M=0)


def test_a_wrong_text_is_found_out() -> None:
    task = TASKS["gemm_0"]
    problem, right = spec_of(task.text).problem, function_of(solve(task))
    trial = plan_trials(problem)[0]
    assert "entries differ" in find_failures(problem, lambda **given: right(**given) * 1.0001, (), trial)[0]
    assert "given shape" in find_failures(problem, lambda **given: right(**given)[:1], (), trial)[0]
    assert "was changed" in find_failures(problem, lambda E0, E1: right(E0.add_(1), E1), (), trial)[0]
    assert [trial.name for trial in plan_trials(problem)] == [trial.name for trial in STEP.list_trials(task)]
    with pytest.raises(UsageError, match="what was written is not equal: base seed 0 float64: S0: "):
        STEP.plan_translation(TASKS["norm_0"], "return E0\n", "norm_0")


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ((torch.ones(2, 3, 4), torch.ones(2, 4, 5)), r"bmm_0: E1: given shape \(2, 4, 5\); expected .* = \(2, 3, 5\)"),
        ((torch.ones(3, 4), torch.ones(2, 4, 5)), r"E0: given \(3, 4\); expected a torch tensor of 3 axes, each at"),
        ((torch.ones(2, 3, 4), torch.ones(2, 3, 5).long()), r"E1: given torch.int64; expected torch.float32"),
        ((torch.ones(2, 3, 4), [1.0]), "E1: given list; expected a torch tensor"),
        ((torch.ones(2, 0, 4), torch.ones(2, 0, 5)), r"E0: given \(2, 0, 4\); expected a torch tensor of 3 axes"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(given_: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        function_of(solve(TASKS["bmm_0"]))(*given_)


def test_a_program_that_is_another_one_at_each_size_takes_those_where_it_was_judged() -> None:
    x, experts, weights = torch.ones(4, 5, 8), torch.eye(3)[[0, 1, 2, 0, 1]].expand(4, 5, 3), torch.ones(8, 8)
    with pytest.raises(ValueError, match=r"expert_0: given E = 3; expected one of \[2\], where it was judged"):
        function_of(solve(TASKS["expert_0"]))(x, experts, W=weights, Wg=torch.ones(8))


def test_the_result_shares_no_memory_with_what_was_given() -> None:
    task = STEP.read_task(
        "inputs: [{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}]\n"
        "outputs: [{name: S0, dtype: fp32, dims: [M, N], data_transform: [\"input_data['E0']\"]}]\n", "same_0",
    )  # fmt: skip
    x = torch.zeros(2, 3)
    made = function_of(solve(task, "return E0\n"))(x)
    made += 1
    assert not x.any()


@pytest.mark.parametrize(("name", "sizes"), [("bmm_0", 48), ("attn_1", 128), ("norm_0", 256), ("gemm_2", 96)])
def test_nothing_is_held_longer_than_it_is_read(name: str, sizes: int) -> None:
    """At most 16 times what is given and computed together; all products of bmm_0 would be 30 times that."""
    problem = spec_of(TASKS[name].text).problem
    draw = draw_data(problem, dict.fromkeys(problem.symbols, sizes), 0)
    function = function_of(solve(TASKS[name]))
    function(**draw.input_data)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        result = function(**draw.input_data)
    events = [(event.start_ns(), event.nbytes()) for event in seen.profiler.kineto_results.events()
              if event.name() == "[memory]"]  # fmt: skip
    held = most = 0
    for _, count in sorted(events):
        held += count
        most = max(most, held)
    assert most <= 1.5 * (result.nbytes + sum(tensor.nbytes for tensor in draw.input_data.values()))


# -- what comes from outside


@given(st.text())
def test_a_literal_holds_exactly_its_text(text: str) -> None:
    for indent in (0, 8):
        shown = write_literal(text, indent)
        assert ast.literal_eval(shown) == text
        assert all(line.isprintable() for line in shown.split("\n"))


HOSTILE = '"""\n\'\'\'\n\\"\\"\\"; import os; os.abort()\n\u202e\x1b[31m\r\n# \\N{BULLET} {0} %s\n'


def test_texts_from_outside_stay_texts() -> None:
    """A task, a program and facts that try to become code give a module of the same statements as any other."""
    quoted = HOSTILE.encode("unicode_escape").decode().replace("'", "x")
    plain = TASKS["bmm_0"]
    task = STEP.read_task(plain.text.replace("torch.bmm(", f"('''{quoted}''' and torch.bmm)("), "evil")
    hostile = solve(replace(task, id=HOSTILE), f'# {HOSTILE!r}\n{plain.impl}# """\\', model=HOSTILE)
    shown, usual = write_module(hostile), write_module(solve(plain))
    assert [type(node) for node in ast.parse(shown).body] == [type(node) for node in ast.parse(usual).body]
    assert all(line.isprintable() for line in shown.split("\n"))
    assert HOSTILE.replace("\n", "\n    ").split("\n")[1].strip() in (function_of(hostile).__doc__ or "")


def test_names_of_the_task_hide_nothing_that_the_text_uses() -> None:
    text = TASKS["bmm_0"].text.replace("E0", "tensor").replace("E1", "given").replace("fn_sum", "torch_")
    source = (TASKS["bmm_0"].impl or "").replace("E0", "tensor").replace("E1", "given").replace("fn_sum", "torch_")
    solved = solve(STEP.read_task(text, "bmm_0"), source)
    assert list(find_differences(spec_of(solved.task.text), function_of(solved))) == []


# -- the package


def test_what_the_tests_need_needs_torch_alone_and_nothing_that_is_not_there() -> None:
    files = vendor_modules("lib_proof", VENDORED)
    modules = {f"lib_proof.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__") for path in files}
    wanted = {name for text in files.values() for name in imports_of(text)}
    ours = {name for name in wanted if name.startswith("lib_proof.")}
    assert all(name in modules or name.rpartition(".")[0] in modules for name in ours)
    assert {name.split(".")[0] for name in wanted - ours} & {"opsmith", "numpy", "yaml", "pytest"} == set()
    assert not [path for path, text in files.items() if "from opsmith" in text or "import opsmith" in text]
    lines = sum(text.count("\n") for text in files.values())
    assert lines < 3000, "it grows: do the tests need all of it?"


def test_equal_operators_give_equal_packages() -> None:
    operators = [solve(TASKS["attn_0"], model="m"), solve(TASKS["bmm_0"], model="m")]
    assert isinstance(STEP, Packaged)
    assert STEP.write_package("lib", operators) == STEP.write_package("lib", operators)
