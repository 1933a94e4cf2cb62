"""Native limits: right programs in the declared types pass, wrong constants and half sums do not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from problems.examples import RMS_NORM, SOFTMAX, TOP_TWO, read_example
from torch import Tensor

from opsmith.problems.compare import compare_outputs
from opsmith.problems.draws import stack_rows
from opsmith.problems.native import NativeData, NativeDraw
from opsmith.problems.native_limits import measure_ulps
from opsmith.problems.problem import Problem

ROW_SUM = """
problem: row_sum
dims: {M: 1, N: 1048576}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: "uniform(0, 1)"}]
outputs: [{name: y, dtype: fp32, shape: [M]}]
reference: |
  def row_sum(x):
      return x.sum(-1)
"""


def list_draws(problem: Problem) -> list[NativeDraw]:
    return [draw for trial in NativeData(problem).plan_trials() for draw in trial.draws]


def passes(draw: NativeDraw, *outputs: Tensor) -> bool:
    """Whether a program with these outputs passes on a draw."""
    results = [[output[None]] for output in outputs]
    return not compare_outputs(draw.problem, stack_rows([draw.declared_limits]), results, lambda number: "").errors


def passes_everywhere(problem: Problem, program: Callable[..., Tensor]) -> bool:
    return all(passes(draw, program(**draw.declared.input_data)) for draw in list_draws(problem))


def test_every_draw_is_in_the_declared_types() -> None:
    data = NativeData(read_example(RMS_NORM))
    trials = list(data.plan_trials())
    assert [(trial.name, len(trial.draws), trial.is_wide) for trial in trials] == [
        ("base declared precision", 5, False),
        ("cases declared precision", 1, False),
        ("odd declared precision", 3, False),
    ]


def test_a_sequential_sum_of_a_million_numbers_is_right() -> None:
    (draw, *_) = list_draws(read_example(ROW_SUM))
    numbers = draw.declared.input_data["x"].numpy()
    sequential = torch.from_numpy(np.cumsum(numbers, axis=-1)[:, -1].copy())
    error = float((sequential.double() - draw.values[0][0]).abs().max())
    assert error > 4.0, "the declared rule alone would refuse it"
    assert passes(draw, sequential)
    assert not passes(draw, sequential * (1 + 1e-3))


def test_where_all_is_cancelled_two_roundings_may_differ() -> None:
    """A variance of one number, as mean of squares less the square of the mean: a fused product rounds once."""
    text = ROW_SUM.replace("N: 1048576", "N: 1").replace("M: 1,", "M: 64,").replace("sum(-1)", "var(-1, correction=0)")
    (draw, *_) = list_draws(read_example(text))
    numbers = draw.declared.input_data["x"][:, 0]
    fused = (numbers.double().square() - numbers.square().double()).float()
    assert float(fused.abs().max()) > 0
    assert not draw.values[0][0].any()
    assert passes(draw, fused)
    assert not passes(draw, fused + 1e-5)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    return (x.float() * scale * weight.float()).bfloat16()


def rms_norm_summed_in_bf16(x: Tensor, weight: Tensor) -> Tensor:
    total = torch.zeros(x.shape[0], 1, dtype=torch.bfloat16)
    for column in x.square().split(1, -1):
        total = total + column
    return (x.float() * torch.rsqrt(total.float() / x.shape[-1] + 1e-5) * weight.float()).bfloat16()


def test_bf16_with_sums_in_fp32() -> None:
    problem = read_example(RMS_NORM)
    assert passes_everywhere(problem, rms_norm)
    assert not passes_everywhere(problem, rms_norm_summed_in_bf16)
    assert not passes_everywhere(problem, lambda x, weight: rms_norm(x, weight, 0.0)), "the case shows the epsilon"
    assert not passes_everywhere(problem, lambda x, weight: (rms_norm(x, weight).float() * 1.03).bfloat16())


def test_a_type_of_its_own_accumulation_has_no_factor() -> None:
    text = ("accumulation: fp32", "accumulation: bf16")
    (draw, *_) = list_draws(read_example(RMS_NORM, text))
    limit = draw.declared_limits[0][0]
    assert limit.allowed is not None
    part = float(limit.allowed.max() / limit.expected.abs().max())
    assert 2**-6 <= part < 0.2, "of the largest value; a factor of 32 would allow 50 %"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_ulps_are_the_distances_of_neighbours(dtype: torch.dtype) -> None:
    values = torch.tensor([0.0, 1e-7, 1.0, 1.99, 2.0, 1000.0, torch.inf], dtype=dtype)
    neighbours = torch.nextafter(values[:-1].float().to(dtype), torch.tensor(torch.inf, dtype=dtype))
    distances = (neighbours.double() - values[:-1].double()).abs()
    assert torch.equal(measure_ulps(values.double(), dtype), torch.cat([distances, torch.zeros(1).double()]))


def test_whole_numbers_are_exact() -> None:
    (draw, *_) = list_draws(read_example(TOP_TWO))
    value, position = (row[0].float() if row[0].is_floating_point() else row[0] for row in draw.values)
    assert passes(draw, value, position)
    assert not passes(draw, value, position.flip(-1))
    assert not passes(draw, value, position.int()), "another dtype"


def test_an_output_beyond_its_type_is_the_authors_fault() -> None:
    problem = read_example(SOFTMAX, ("torch.softmax(x, -1)", "x.exp() * 1e300"))
    with pytest.raises(Exception, match="reference within the declared range"):
        _ = list_draws(problem)[0].declared_limits


def test_the_reach_is_what_an_entry_depends_on() -> None:
    assert [reach.elements for reach in list_draws(read_example(SOFTMAX))[0]._reach] == [40]
    reaches = list_draws(read_example(TOP_TWO))[0]._reach
    assert [reach.elements for reach in reaches] == [1, 9], "whole numbers have no derivative"
