"""Operators of a library: sizes from shapes, results, refusals, and modules that hold exactly what they were given."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opsmith.records import Task
from opsmith.suites import load_tasks
from opsmith.targets.literals import write_literal
from opsmith.targets.operator_error import OperatorError
from opsmith.targets.programs import Solved
from opsmith.targets.protocols import Packaged
from opsmith.targets.step import STEP, spec_of
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.library.module import module_text, operator_variable
from opsmith.targets.step.library.operator import Operator
from opsmith.targets.step.library.package import VENDORED
from opsmith.targets.step.library.proof import failures, trial_names
from opsmith.targets.step.library.sizes import free_symbols, sizes_of
from opsmith.targets.vendoring import imports_of, vendor_modules

TASKS = {task.id: task for suite in ("step26", "step_extra") for task in load_tasks([suite])}


def spec_with(*tensors: str) -> TaskSpec:
    """A task whose inputs have these dims."""
    rows = "\n".join(
        f"  - {{name: E{at}, dtype: fp32, dims: {dims}, data_gen: torch.rand}}" for at, dims in enumerate(tensors)
    )
    outputs = "outputs:\n  - {name: S0, dtype: fp32, dims: [1], data_transform: ['torch.zeros(1)']}\n"
    return read_spec(f"inputs:\n{rows}\n{outputs}")


def module_of(solved: Solved) -> dict[str, Any]:
    """The names of an operator's module, which runs on this package instead of a copy."""
    text = module_text(solved, spec_of(solved.task.text), "opsmith")
    names: dict[str, Any] = {"__name__": "operator_module"}
    exec(compile(text, solved.name, "exec"), names)
    return names


def solved(name: str, source: str | None = None, **facts: str) -> Solved:
    task = TASKS[name]
    return Solved(name, task, source or task.impl or "", facts)


@pytest.mark.parametrize(
    ("dims", "shapes", "sizes", "free"),
    [
        (["[M, N]"], [(3, 4)], {"M": 4, "N": 3}, []),
        (["[D/2, N]"], [(12, 4)], {"D": 8, "N": 12}, []),
        (["[M*N, K]", "[N]"], [(2, 15), (5,)], {"K": 2, "N": 5, "M": 3}, []),
        (["[M*M]"], [(49,)], {"M": 7}, []),
        (["[M*M]"], [(48,)], {}, []),
        (["[M*N]"], [(15,)], {}, ["M"]),
        (["[M*N, M*K]"], [(8, 6)], {}, ["K"]),
    ],
)
def test_sizes_follow_from_shapes(dims: list[str], shapes: list[Any], sizes: dict[str, int], free: list[str]) -> None:
    spec = spec_with(*dims)
    named = {f"E{at}": shape for at, shape in enumerate(shapes)}
    assert sizes_of(spec, named, {}) == sizes
    assert free_symbols(spec) == free


def test_a_size_that_no_shape_determines_can_be_given() -> None:
    spec = spec_with("[M*N]")
    assert free_symbols(spec) == ["M"]
    assert sizes_of(spec, {"E0": (15,)}, {"M": 3}) == {"M": 3, "N": 5}
    blocks = module_of(solved("blocks_0"))["blocks_0"]
    rows = torch.arange(12.0).reshape(1, 12)
    assert blocks(rows, M=4).tolist() == [[6, 22, 38]]
    assert blocks(rows, M=6).tolist() == [[15, 51]]
    with pytest.raises(OperatorError, match=r"E0: given shape \(1, 12\)"):
        blocks(rows)  # the task's own M is 5
    with pytest.raises(OperatorError, match="M: given 0; expected a size"):
        blocks(rows, M=0)


@pytest.mark.parametrize("name", TASKS)
def test_a_module_holds_the_task_and_the_program_and_is_right(name: str) -> None:
    """The base shape in both precisions; the exported tests run all trials."""
    names = module_of(solved(name))
    assert names["TASK"] == spec_of(TASKS[name].text)
    assert names["PROGRAM"] == TASKS[name].impl
    assert [failures(names["OPERATOR"], names[name], at) for at in (0, 1)] == [[], []]


def test_a_wrong_result_is_found_out() -> None:
    """What the exported tests say of an operator that is not right."""
    operator, right = (module_of(solved("gemm_0"))[key] for key in ("OPERATOR", "gemm_0"))
    assert "entries differ" in failures(operator, lambda **tensors: right(**tensors) * 1.0001, 0)[0]
    assert "given shape" in failures(operator, lambda **tensors: right(**tensors)[:1], 0)[0]
    assert "was changed" in failures(operator, _in_place(right), 0)[0]
    wrong = module_of(solved("bmm_0", "return E0\n"))
    with pytest.raises(OperatorError, match="sizes that the program fits"):
        wrong["bmm_0"](torch.ones(2, 3, 4), torch.ones(2, 3, 5))


def _in_place(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def changing(**tensors: torch.Tensor) -> torch.Tensor:
        result = function(**tensors)
        for tensor in tensors.values():
            tensor.add_(1)
        return result

    return changing


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (
            (torch.ones(2, 3, 4), torch.ones(2, 4, 5)),
            r"bmm_0: E1: given shape \(2, 4, 5\); expected .* = \(2, 3, 5\), with",
        ),
        (
            (torch.ones(3, 4), torch.ones(2, 4, 5)),
            r"E0: given shape \(3, 4\); expected 3 axes, \(\w+, \w+, \w+\), each at",
        ),
        (
            (torch.ones(2, 3, 4), torch.ones(2, 3, 5, dtype=torch.int64)),
            r"E1: given torch.int64; expected torch.float32",
        ),
        ((torch.ones(2, 3, 4), torch.ones(2, 3, 5).double()), r"E1: given torch.float64; expected torch.float32 \(or"),
        ((torch.ones(2, 3, 4), [1.0]), "E1: given list; expected a torch tensor"),
        ((torch.ones(2, 3, 4), torch.ones(2, 3, 5).to_sparse()), "expected a dense tensor on the CPU"),
        ((torch.ones(2, 0, 4), torch.ones(2, 0, 5)), r"E0: given shape \(2, 0, 4\); expected 3 axes"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(given_: tuple[Any, ...], words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        module_of(solved("bmm_0"))["bmm_0"](*given_)


def test_float64_is_computed_in_float64_and_nothing_of_torch_changes() -> None:
    x, y = torch.rand(2, 3, 4, requires_grad=True), torch.rand(2, 3, 5)
    state, bmm = torch.get_rng_state(), module_of(solved("bmm_0"))["bmm_0"]
    single, double = bmm(x, E1=y), bmm(x.double(), y.double())
    assert (single.dtype, double.dtype, single.requires_grad) == (torch.float32, torch.float64, False)
    torch.testing.assert_close(double, torch.bmm(x.double().transpose(1, 2), y.double()), rtol=1e-12, atol=1e-12)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() is torch.float32


def test_what_a_caller_sets_changes_nothing() -> None:
    x, gate = torch.rand(4, 6), torch.rand(6, 3)
    function = module_of(solved("index_0"))["index_0"]
    wanted = function(x, Wg=gate)
    with torch.inference_mode():
        frozen = x.clone()
        assert all(map(torch.equal, function(frozen, Wg=gate.clone()), wanted))
    for surroundings in (torch.autocast("cpu", torch.bfloat16), torch.device("meta"), torch.enable_grad()):
        with surroundings:
            assert all(map(torch.equal, function(frozen, Wg=gate.requires_grad_()), wanted))


def test_sizes_that_the_program_does_not_fit_are_told_beside_those_it_fits() -> None:
    x, experts, weights = torch.ones(4, 5, 8), torch.eye(3)[[0, 1, 2, 0, 1]].expand(4, 5, 3), torch.ones(8, 8)
    with pytest.raises(OperatorError, match=r"expert_0: given D = 8, E = 3, .* the task's own: D = 16, E = 2, "):
        module_of(solved("expert_0"))["expert_0"](x, experts, W=weights, Wg=torch.ones(8))


def test_the_result_shares_no_memory_with_what_was_given() -> None:
    task = STEP.read_task(
        "inputs: [{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}]\n"
        "outputs: [{name: S0, dtype: fp32, dims: [M, N], data_transform: [\"input_data['E0']\"]}]\n", "same_0",
    )  # fmt: skip
    x = torch.zeros(2, 3)
    made = module_of(Solved("same_0", task, "return E0\n", {}))["same_0"](x)
    made += 1
    assert not x.any()


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
    text = plain.text.replace("torch.bmm(", f"('''{quoted}''' and torch.bmm)(")
    task = STEP.read_task(text, "evil")
    hostile = Solved(
        "evil", Task(HOSTILE, "step", task.text), f'# {HOSTILE!r}\n{plain.impl}# """\\', {"model": HOSTILE}
    )
    shown, usual = (module_text(one, spec_of(one.task.text), "opsmith") for one in (hostile, solved("bmm_0")))
    assert [type(node) for node in ast.parse(shown).body] == [type(node) for node in ast.parse(usual).body]
    assert all(line.isprintable() for line in shown.split("\n"))
    names = module_of(hostile)
    assert names["TASK"] == spec_of(task.text)
    assert names["PROGRAM"] == hostile.source
    assert HOSTILE.replace("\n", "\n    ").split("\n")[1].strip() in names["evil"].__doc__


def test_a_name_of_the_task_does_not_hide_the_operator() -> None:
    text = TASKS["bmm_0"].text.replace("E0", "OPERATOR").replace("E1", "TASK")
    source = (TASKS["bmm_0"].impl or "").replace("E0", "OPERATOR").replace("E1", "TASK")
    task = STEP.read_task(text, "bmm_0")
    assert operator_variable(spec_of(task.text)) == "OPERATOR_"
    names = module_of(Solved("bmm_0", task, source, {}))
    assert failures(names["OPERATOR_"], names["bmm_0"], 0) == []


# -- the package


def test_the_runtime_needs_torch_alone_and_nothing_that_is_not_there() -> None:
    files = vendor_modules("lib._runtime", VENDORED)
    modules = {f"lib._runtime.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__") for path in files}
    wanted = {name for text in files.values() for name in imports_of(text)}
    ours = {name for name in wanted if name.startswith("lib.")}
    assert all(name in modules or name.rpartition(".")[0] in modules for name in ours)
    assert {name.split(".")[0] for name in wanted - ours} & {"opsmith", "numpy", "yaml", "pytest"} == set()
    assert not [path for path, text in files.items() if "from opsmith" in text or "import opsmith" in text]
    lines = sum(text.count("\n") for text in files.values())
    assert lines < 8280, "the runtime grows: does an operator need all of it?"


def test_equal_operators_give_equal_packages() -> None:
    operators = [solved("attn_0", model="m"), solved("bmm_0", model="m")]
    assert isinstance(STEP, Packaged)
    assert STEP.write_package("lib", operators) == STEP.write_package("lib", operators)


def test_trials_are_those_of_the_verdict() -> None:
    operator = Operator("bmm_0", spec_of(TASKS["bmm_0"].text), TASKS["bmm_0"].impl or "")
    assert trial_names(operator) == [trial.name for trial in STEP.list_trials(TASKS["bmm_0"])]
