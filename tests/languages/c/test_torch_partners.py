"""Torch beside plain programs in C: eager on two problems, torch.compile on one, and why others have no figure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import load_c_task
from opsmith.measuring.measure import choose_timed_sets
from opsmith.measuring.record import MeasuringGrade
from opsmith.measuring.torch_partners import COMPILE, EAGER, TorchComparison, TorchRequest, measure_torch
from opsmith.records import Task
from opsmith.running.toolchain import CXX_COMPILER, NO_CXX_COMPILER, find_toolchain

pytestmark = needs_compiler
needs_cxx = pytest.mark.skipif(find_toolchain(CXX_COMPILER) is None, reason=NO_CXX_COMPILER)


def time_torch(task: Task, *partners: str) -> TorchComparison:
    request = TorchRequest(task, choose_timed_sets(task, ["small"]), partners, MeasuringGrade.SCREEN)
    return measure_torch(request)["small"]


@pytest.mark.parametrize("problem", ["row_sum", "grouped_gemm"])
def test_eager_is_timed_beside_the_plain_program(problem: str) -> None:
    comparison = time_torch(load_c_task(f"kernels/{problem}", False), EAGER)
    figure = comparison.figures[EAGER]
    assert figure.reason == ""
    assert comparison.plain is not None
    assert figure.time is not None
    assert figure.to_plain is not None
    assert figure.time.value > 1000  # ns: a call into torch takes a microsecond at least


@needs_cxx
def test_compiled_torch_is_timed_where_it_may_write_in_one_folder_only() -> None:
    comparison = time_torch(load_c_task("kernels/softmax", False), EAGER, COMPILE)
    assert {name: figure.reason for name, figure in comparison.figures.items()} == {EAGER: "", COMPILE: ""}


@needs_cxx
def test_a_reference_that_is_not_one_graph_has_no_compiled_figure() -> None:
    task = load_c_task("kernels/row_sum", False)
    text = task.text.replace("return x.sum(-1)", "return x.sum(-1) if x.sum() > 0 else x.sum(-1).clone()")
    comparison = time_torch(replace(task, text=text), EAGER, COMPILE)
    assert text != task.text
    assert comparison.figures[EAGER].reason == ""
    assert "torch.compile" in comparison.figures[COMPILE].reason


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("open('/etc/passwd').read()", "Permission"),
        ("open('stolen', 'w').write('x'); open('../stolen', 'w')", "Permission"),
        ("__import__('socket').create_connection(('127.0.0.1', 9))", "Permission"),
        ("raise SystemExit(0)", "SystemExit"),
        ("__import__('os')._exit(7)", "ended with 7"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "not permitted"),
    ],
)
def test_a_reference_can_neither_leave_its_folder_nor_end_the_measuring(statement: str, words: str) -> None:
    task = load_c_task("kernels/row_sum", False)
    text = task.text.replace("return x.sum(-1)", f"{statement}\n      return x.sum(-1)")
    figure = time_torch(replace(task, text=text), EAGER).figures[EAGER]
    assert text != task.text
    assert figure.time is None
    assert words in figure.reason
