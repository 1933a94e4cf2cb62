"""Small constants of references: which are changed, and that a program which lacks one is told so."""

import pytest

from opsmith.api import load_task
from opsmith.problems.compare import Clues, compare_outputs
from opsmith.problems.constants import change_constants
from opsmith.problems.draws import stack_rows
from opsmith.problems.native import NativeData
from opsmith.targets.native.task import read_task_problem

LAYER_NORM = read_task_problem(load_task("kernels/layer_norm", "c").text)


def test_each_constant_is_left_out_replaced_and_moved():
    changes = {changed.change: changed.problem for changed in change_constants(LAYER_NORM)}
    assert changes["without its 1e-05 (eps)"].scalars["eps"] == 0.0
    assert "torch.sqrt(variance) + eps" in changes["with eps added behind torch.sqrt in line 4"].reference
    assert [*change_constants(read_task_problem(load_task("kernels/softmax", "c").text))] == []


@pytest.mark.parametrize(("inside", "outside", "words"), [
    (0, 0, "the reference without its 1e-05 (eps) gives these values"),
    (0, 1e-5, "the reference with eps added behind torch.sqrt in line 4 gives these values"),
])  # fmt: skip
def test_a_native_program_is_told_where_its_epsilon_is_amiss(inside, outside, words):
    draw = NativeData(LAYER_NORM).make_draw("case", {}, 0, is_case=True)
    x, weight, bias = draw.declared.input_data.values()
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + inside).sqrt() + outside
    results = [[(centred / deviation * weight + bias)[None]]]
    limits = stack_rows([draw.declared_limits])
    (error,) = compare_outputs(draw.problem, limits, results, lambda number: "case 0", clues=Clues([draw])).errors
    assert error.remedy.startswith(words)
