"""Distributions: data stays what its author allows, unfit draws are left out, and wrong kernels show on the others."""

import pytest
import torch
from problems.examples import SOFTMAX, read_example
from problems.test_native import passes
from torch import Tensor

from opsmith.errors import TaskError
from opsmith.problems.distributions import Shaping
from opsmith.problems.drawing import draw_data
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.native import NativeData
from opsmith.problems.problem import Distribution, Problem
from opsmith.records import Level, Scrutiny

BAGS = """
problem: bags
dims: {T: 60, B: 8, V: 20}
inputs:
  - {name: table, dtype: fp32, shape: [V], data: "uniform(0.5, 1.5)"}
  - {name: index, dtype: int64, shape: [T], data: "torch.randint(0, V, (T,))"}
  - {name: starts, dtype: int64, shape: [B], data: "torch.randint(0, T + 1, (B,)).sort().values"}
  - {name: mask, dtype: bool, shape: [T], data: "torch.rand(T) < 0.5"}
outputs: [{name: y, dtype: fp32, shape: [T]}]
reference: |
  def bags(table, index, starts, mask):
      return table[index] * mask + starts.sum()
"""
ARGMAX = """
problem: argmax
dims: {M: 20, N: 70}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
outputs: [{name: y, dtype: int64, shape: [M]}]
reference: |
  def argmax(x):
      return torch.where(x == x.amax(-1, keepdim=True), torch.arange(x.shape[-1]), x.shape[-1]).amin(-1)
"""
FIRST = "ties: of equal ones the first\n"
SPREAD = "shapes: {odd: {M: 7, N: 33}}\n"


def read(text: str) -> Problem:
    return read_problem(text).problem


@pytest.mark.parametrize("kind", Distribution)
@pytest.mark.parametrize("variant", range(5))
def test_indices_offsets_and_masks_stay_valid(kind: Distribution, variant: int) -> None:
    data = draw_data(read(BAGS), {}, 7, Shaping(kind, variant)).input_data
    assert int(data["index"].min()) >= 0
    assert int(data["index"].max()) < 20
    assert bool((data["starts"].diff() >= 0).all())
    assert 0 <= int(data["starts"].min()) <= int(data["starts"].max()) <= 60
    assert float(data["table"].min()) >= 0.5
    assert float(data["table"].max()) <= 1.5
    assert [tensor.dtype for tensor in data.values()] == [torch.float32, torch.int64, torch.int64, torch.bool]


def test_equal_numbers_are_tried_where_the_problem_says_which_of_them_counts() -> None:
    unfit = NativeData(read(ARGMAX)).explain_distributions()
    assert {Distribution.CONSTANT, Distribution.SPARSE, Distribution.FEW} <= unfit.keys()
    assert all("`ties`" in reason for reason in unfit.values())
    assert NativeData(read(ARGMAX + FIRST)).explain_distributions() == {}


def test_what_rounding_decides_is_left_out_with_its_reason() -> None:
    text = SOFTMAX.replace("torch.softmax(x, -1)", "torch.sin(x * 1e4)")
    unfit = NativeData(read(text)).explain_distributions()
    assert "rounding alone moves y" in unfit[Distribution.SHIFTED]


def test_all_distributions_are_tried_at_the_full_level_and_two_at_the_cheap_one() -> None:
    data = NativeData(read(ARGMAX + FIRST + SPREAD))
    cheap, *full = data.draw_shaped(Scrutiny("a", Level.FULL))
    kinds = {draw.shaping.kind for group in full for draw in group if draw.shaping is not None}
    assert len(cheap) == 2
    assert kinds == set(Distribution)
    assert [group[0].shape_set for group in full] == ["base"] * 3 + ["odd"] * 2
    assert next(iter(data.draw_shaped(Scrutiny("a")))) is cheap


def test_other_data_comes_with_the_scalars_of_the_file_and_with_others_far_from_them() -> None:
    text = """
problem: capped
dims: {M: 8, N: 16}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
scalars: {cap: 30.0}
outputs: [{name: y, dtype: fp32, shape: [M]}]
reference: |
  def capped(x, cap):
      return torch.logsumexp(cap * torch.tanh(x / cap), -1)
"""

    groups = [*NativeData(read(text)).draw_shaped(Scrutiny("a", Level.FULL))]
    caps = {draw.problem.scalars["cap"] for group in groups for draw in group}
    assert 30.0 in caps
    assert len(caps) > 5
    assert all(cap == 30.0 or not 30 / 4 < cap < 30 * 4 for cap in caps)


def test_draws_are_those_of_the_secret() -> None:
    def first(secret: str) -> Tensor:
        return next(iter(NativeData(read(ARGMAX)).draw_shaped(Scrutiny(secret))))[0].declared.input_data["x"]

    assert torch.equal(first("a"), first("a"))
    assert not torch.equal(first("a"), first("b"))


WRONG = {
    "exponentials in float64 without a shift": lambda x: (
        x.double().exp() / x.double().exp().sum(-1, keepdim=True)
    ).float(),
    "a largest entry of at least -1000": lambda x: (
        torch.softmax(x - x.amax(-1, keepdim=True).clamp(min=-1e3), -1) * (x.amax(-1, keepdim=True) > -1100)
    ),
    "inputs in half precision": lambda x: torch.softmax(x.half().float(), -1),
}


@pytest.mark.parametrize("what", WRONG)
def test_softmax_that_is_right_on_usual_numbers_is_refused(what: str) -> None:
    draws = [d for group in NativeData(read_example(SOFTMAX)).draw_shaped(Scrutiny("a", Level.FULL)) for d in group]
    assert not all(passes(draw, WRONG[what](draw.declared.input_data["x"])) for draw in draws)
    assert all(passes(draw, torch.softmax(draw.declared.input_data["x"], -1)) for draw in draws)


def test_an_author_states_data_of_an_input_under_a_distribution() -> None:
    line = "data: normal}]"
    text = (
        ARGMAX.replace(line, 'data: normal, distributions: {negative: "-1 - torch.rand(M, N)", few: declared}}]')
        + FIRST
    )
    file = read_problem(text)
    assert read_problem(write_problem(file)) == file
    negative = draw_data(file.problem, {}, 1, Shaping(Distribution.NEGATIVE)).input_data["x"]
    few = draw_data(file.problem, {}, 1, Shaping(Distribution.FEW)).input_data["x"]
    assert float(negative.min()) >= -2
    assert float(negative.max()) <= -1
    assert few.unique().numel() > 1000


def test_an_unknown_distribution_is_told_with_its_place() -> None:
    with pytest.raises(TaskError) as caught:
        read_problem(ARGMAX.replace("data: normal}", 'data: normal, distributions: {sortd: "torch.rand(M, N)"}}'))
    assert "line 4, column" in str(caught.value)
    assert "'sortd'" in str(caught.value)
    assert "sorted" in str(caught.value)
