"""Native limits by their figures: every term of the rule, and how many inputs an entry depends on."""

import math

import pytest
import torch
from problems.examples import TOP_TWO, read_example

from opsmith.problems.native import NativeData
from opsmith.problems.native_limits import (
    Reach,
    Rounding,
    count_reach,
    make_exact_limit,
    make_native_limit,
    measure_ulps,
)
from opsmith.problems.problem import ArrayType, OutputTensors, Problem

INF = math.inf
VALUES = torch.tensor([0.0, 1.0, -96.0], dtype=torch.float64)
FP32, BF16 = ArrayType("fp32", ()), ArrayType("bf16", ())


def make_output(type_: ArrayType, rtol: float | None = None) -> OutputTensors:
    return OutputTensors("y", (type_,), rtol=rtol)


def list_allowed(type_: ArrayType, rounding: Rounding, values: torch.Tensor = VALUES) -> list[float]:
    limit = make_native_limit(make_output(type_), type_, values, rounding)
    assert limit.allowed is not None
    assert limit.dtype is (torch.float32 if type_ is FP32 else torch.bfloat16)
    allowed: list[float] = limit.allowed.expand(values.shape).tolist()
    return allowed


def shift(by: float) -> torch.Tensor:
    return VALUES + torch.tensor([0.0, by, 0.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("working", "rounded", "moved", "reach", "allowed"),
    [
        ("fp32", 0.25, 0.125, 1, 32 * 0.25),
        ("fp32", 0.125, -0.25, 1, 32 * 0.25),
        ("fp32", 0.0, 0.0, 1, 32 * 2 * 2**-23 * 96),
        ("fp32", 0.0, 0.0, 10**6, 1000 * 2**-23 * 96),
        ("fp64", 0.0, 0.0, 10**6, 1000 * 2**-52 * 96),
    ],
)
def test_the_largest_term_is_what_is_allowed(
    working: str, rounded: float, moved: float, reach: int, allowed: float
) -> None:
    type_ = FP32 if working == "fp32" else ArrayType("fp64", ())
    limit = make_native_limit(make_output(type_), type_, VALUES, Rounding(working, shift(rounded), shift(moved), reach))
    assert limit.allowed is not None
    assert float(limit.allowed) == pytest.approx(allowed, rel=1e-9, abs=0)
    assert limit.expected.dtype is limit.allowed.dtype is torch.float64


def test_a_narrow_type_that_sums_itself_has_no_factor_and_one_that_is_rounded_last_two_ulps_more() -> None:
    own = list_allowed(BF16, Rounding("bf16", shift(0.5), VALUES, 1))
    assert own == pytest.approx([2 * 2**-7 * 96] * 3, rel=1e-9, abs=0)
    assert list_allowed(BF16, Rounding("bf16", shift(4.0), VALUES, 1)) == [4.0] * 3
    assert list_allowed(BF16, Rounding("bf16", VALUES, VALUES, 100)) == pytest.approx([10 * 2**-7 * 96] * 3)
    wide = list_allowed(BF16, Rounding("fp32", VALUES, VALUES, 1))
    common = 32 * 2 * 2**-23 * 96
    tiny = 2 * torch.finfo(torch.bfloat16).tiny * 2**-7
    assert wide == pytest.approx([common + tiny, common + 2 * 2**-7, common + 2 * 2**-7 * 64], rel=1e-9, abs=0)


def test_where_all_is_zero_two_roundings_of_the_inputs_are_allowed() -> None:
    zeros = 0 * VALUES
    assert list_allowed(FP32, Rounding("fp32", zeros, zeros, 5, scale=8.0), zeros) == [2 * 2**-23 * 8] * 3
    assert list_allowed(FP32, Rounding("fp32", zeros, zeros, 5), zeros) == [0.0] * 3
    assert list_allowed(FP32, Rounding("fp32", zeros + 1, zeros, 5, scale=8.0), zeros) == [32.0] * 3


def test_an_outputs_own_tolerance_comes_first_and_what_is_exact_has_none() -> None:
    limit = make_native_limit(make_output(FP32, 0.5), FP32, VALUES, Rounding("fp32", VALUES, VALUES, 1))
    assert limit.allowed is not None
    assert (limit.allowed.tolist(), limit.dtype) == ([0.0, 0.5, 48.0], torch.float32)
    type_ = ArrayType("int32", ())
    exact = make_exact_limit(type_, torch.tensor([1, 2]), torch.tensor([1, 3]))
    assert (exact.expected.dtype, exact.allowed, exact.dtype) == (torch.int32, None, torch.int32)
    assert exact.undecided is not None
    assert exact.undecided.tolist() == [False, True]


def test_a_value_beyond_its_type_is_its_authors_fault_and_an_infinite_one_is_not() -> None:
    rounding = Rounding("fp32", VALUES, VALUES, 1)
    with pytest.raises(Exception, match=r"infinite values in torch\.float16"):
        make_native_limit(OutputTensors("y", (FP32,)), ArrayType("fp16", ()), VALUES * 1e4, rounding)
    infinite = torch.tensor([INF, 1.0, -96.0], dtype=torch.float64)
    limit = make_native_limit(make_output(FP32), FP32, infinite, Rounding("fp32", infinite, infinite, 1))
    assert limit.allowed is not None
    assert float(limit.allowed) == pytest.approx(32 * 2 * 2**-23 * 96)
    assert measure_ulps(infinite, torch.float32).tolist() == [0.0, 2**-23, 64 * 2**-23]


ROWS = """
problem: rows
dims: {M: 3, N: 8}
inputs:
  - {name: x, dtype: fp32, shape: [M, N], data: normal}
  - {name: w, dtype: fp32, shape: [N], data: "uniform(0.5, 1.5)"}
  - {name: place, dtype: int64, shape: [M], data: torch.arange(M)}
outputs: [{name: y, dtype: fp32, shape: [M]}]
reference: |
  def rows(x, w, place):
      return (x * w).sum(-1)
"""
SUFFIXES = "x.flip(-1).cumsum(-1).flip(-1)"  # sums of 8, 7, ... 1 numbers


def reach_of(result: str, shape: str = "[M]") -> list[Reach]:
    problem: Problem = read_example(ROWS, ("(x * w).sum(-1)", result.replace("ROW", "torch.arange(x.shape[1])")), ("[{name: y, dtype: fp32, shape: [M]}]", f"[{{name: y, dtype: fp32, shape: {shape}}}]"))  # fmt: skip
    (draw, *_) = next(NativeData(problem).plan_trials()).draws
    return count_reach(problem, draw.wide)


@pytest.mark.parametrize(
    ("result", "shape", "reach"),
    [
        ("(x * w).sum(-1)", "[M]", 16),
        ("x.sum(-1) + place", "[M]", 8),
        ("x", "[M, N]", 1),
        ("x.cumsum(-1) + 1e6 * (ROW == 0)", "[M, N]", 8),  # the last entry, whichever is the largest
        (f"{SUFFIXES} - 1e6 * (ROW == 0)", "[M, N]", 8),  # the largest one
        (
            f"torch.where(ROW == 3, torch.inf, torch.where(ROW == 4, -torch.inf, 1e-6 * {SUFFIXES} + 1e-3 * (ROW == 0)))",
            "[M, N]",
            8,
        ),
        ("torch.ones(x.shape[0], dtype=x.dtype)", "[M]", 10),  # 32 inputs by 3 outputs
        ("torch.from_numpy(x.numpy().sum(-1))", "[M]", 10),  # without derivatives
        ("torch.ones(40, dtype=x.dtype)", "[5*N]", 1),
        ("torch.ones(1, dtype=x.dtype)", "[1]", 32),
    ],
)
def test_the_reach_is_counted_by_derivatives_or_estimated(result: str, shape: str, reach: int) -> None:
    assert [counted.elements for counted in reach_of(result, shape)] == [reach]


def test_terms_are_inputs_times_their_derivatives() -> None:
    """A sum of terms that cancel has those of one that does not."""
    signs = "(1 - 2 * (ROW % 2)).to(x.dtype)"
    ((_, plain),), ((_, cancelling),) = reach_of("x.abs().sum(-1)"), reach_of(f"(x.abs() * {signs}).sum(-1)")
    assert plain > 1
    assert cancelling == pytest.approx(plain, rel=0.7)
    ((_, scaled),) = reach_of("1000 * x.abs().sum(-1)")
    assert scaled == pytest.approx(1000 * plain)


def test_a_sum_that_cancels_may_lie_off_by_what_its_terms_round_to() -> None:
    rounding = Rounding("fp32", VALUES, VALUES, 1, terms=1e6)
    assert list_allowed(FP32, rounding) == pytest.approx([2 * 2**-23 * 1e6] * 3)


def test_where_there_is_no_derivative_terms_are_unknown() -> None:
    assert reach_of("torch.ones(x.shape[0], dtype=x.dtype)") == [Reach(10)]


def test_whole_numbers_have_no_derivative() -> None:
    (draw, *_) = next(NativeData(read_example(TOP_TWO)).plan_trials()).draws
    assert [reach.elements for reach in count_reach(draw.problem, draw.wide)] == [1, 9]
