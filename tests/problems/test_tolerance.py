"""Limits, by their figures: each term of each rule, infinities, an output's own, and how draws are stacked."""

import pytest
import torch
from torch import Tensor

from opsmith.problems.problem import ArrayType, OutputTensors
from opsmith.problems.tolerance import (
    Limit,
    blame_overflow,
    describe_difference,
    find_largest,
    make_declared_limit,
    make_narrowed_limit,
    make_wide_limit,
    mark_undecided,
    measure_distance,
    stack_limits,
)

INF, NAN = float("inf"), float("nan")
FLOAT = ArrayType("fp32", ())
PLAIN = OutputTensors("y", (FLOAT,))
VALUES = torch.tensor([0.0, 1.0, -200.0, INF], dtype=torch.float64)


def list_allowed(limit: Limit) -> list[float]:
    assert limit.allowed is not None
    values: list[float] = limit.allowed.tolist()
    return values


def test_a_float64_trial_allows_a_share_of_the_entry_one_of_the_largest_and_a_floor() -> None:
    limit = make_wide_limit(PLAIN, VALUES, False)
    common = 1e-10 * 200 + 1e-12
    assert list_allowed(limit) == pytest.approx([common, 1e-8 + common, 2e-6 + common, common], rel=1e-9, abs=0)
    assert list_allowed(make_wide_limit(PLAIN, 0 * VALUES[:2], False)) == pytest.approx([1e-12, 1e-12], rel=1e-9, abs=0)
    assert (limit.dtype, limit.expected.tolist()) == (torch.float64, VALUES.tolist())
    exact = make_wide_limit(PLAIN, VALUES.float(), True)
    assert (exact.allowed, exact.dtype) == (None, torch.float64)


@pytest.mark.parametrize(
    "make", [make_wide_limit, lambda *given: make_declared_limit(*given[:2], VALUES.float(), VALUES, given[2])]
)
@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize(
    ("rtol", "atol", "allowed"),
    [(0.5, None, [0, 0.5, 100, 0]), (None, 0.25, [0.25] * 4), (0.5, 0.25, [0.25, 0.75, 100.25, 0.25]), (0.0, 0.0, [0] * 4)],
)  # fmt: skip
def test_an_outputs_own_tolerance_is_all_that_counts(make, rtol, atol, allowed, is_exact) -> None:  # type: ignore[no-untyped-def]
    limit = make(OutputTensors("y", (FLOAT,), rtol=rtol, atol=atol), VALUES, is_exact)
    assert list_allowed(limit) == allowed


@pytest.mark.parametrize(
    ("rounded", "moved", "distance"),
    [(0.25, 0.0, 0.25), (0.0, 0.5, 0.5), (-0.25, -0.125, 0.25), (0.0, 0.0, 2 * 2**-23 * 200)],
)
def test_the_declared_precision_allows_32_times_the_largest_of_three(
    rounded: float, moved: float, distance: float
) -> None:
    change = torch.tensor([0.0, 1.0, 0.0, 0.0])
    limit = make_declared_limit(PLAIN, VALUES, (VALUES + rounded * change).float(), VALUES + moved * change, False)
    assert list_allowed(limit) == pytest.approx(32 * distance, rel=1e-9, abs=0)
    assert limit.allowed is not None
    assert (limit.dtype, limit.expected.dtype, limit.allowed.dtype) == (torch.float32, torch.float64, torch.float64)


def test_what_is_exact_is_compared_in_its_type_less_what_rounding_decides() -> None:
    limit = make_declared_limit(PLAIN, torch.tensor([1, 2, 3]), torch.tensor([1, 5, 3]), torch.tensor([1, 2, 3]), True)
    assert (limit.allowed, limit.dtype) == (None, torch.int64)
    assert limit.undecided is not None
    assert limit.undecided.tolist() == [False, True, False]
    assert mark_undecided(torch.tensor([1.0]), torch.tensor([1.0])) is None


def test_a_declared_type_that_overflows_is_its_authors_fault() -> None:
    with pytest.raises(Exception, match=r"reference, y: given infinite values in torch\.float16"):
        make_declared_limit(PLAIN, torch.tensor([1e6]).double(), torch.tensor([INF]).half(), torch.tensor([1e6]), False)
    own = OutputTensors("y", (FLOAT,), ("x",))
    assert "outputs, y, data_transform" in str(blame_overflow(own, torch.tensor([INF])))


def test_authors_code_that_narrows_gets_the_larger_limit_of_each_entry() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    wide, declared = (Limit(x, torch.tensor(allowed), torch.float64) for allowed in ([0.1, 0.4], [0.2, 0.3]))
    assert make_narrowed_limit(wide, declared).allowed is not None
    assert list_allowed(make_narrowed_limit(wide, declared)) == pytest.approx([0.2, 0.4])
    exact = Limit(x, None, torch.float64)
    assert make_narrowed_limit(wide, exact) is wide
    assert make_narrowed_limit(exact, declared) is exact


def test_distances_and_magnitudes_are_of_what_is_finite() -> None:
    assert find_largest(torch.tensor([1.0, -3.0, INF, -INF, NAN])) == 3.0
    assert find_largest(torch.tensor([INF])) == find_largest(torch.tensor([])) == 0.0
    x, y = torch.tensor([1.0, 5.0, INF, 2.0]), torch.tensor([1.5, 3.0, INF, INF], dtype=torch.float64)
    assert measure_distance(x, y) == measure_distance(y.float(), x.double()) == 2.0
    assert measure_distance(x[2:], y[2:]) == 0.0


def test_draws_are_stacked_with_what_each_allows_and_leaves_undecided() -> None:
    x, flags = torch.tensor([1.0, 2.0]), torch.tensor([True, False])
    scalar, entries = Limit(x, torch.tensor(0.5), torch.float32), Limit(x + 1, torch.tensor([0.1, 0.2]), torch.float32)
    both = stack_limits([scalar, entries])
    assert both.expected.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert both.allowed is not None
    assert torch.equal(both.allowed, torch.tensor([[0.5, 0.5], [0.1, 0.2]]))
    assert (both.dtype, both.undecided) == (torch.float32, None)
    assert both.of_draw(1).expected.tolist() == [2.0, 3.0]
    assert list_allowed(both.of_draw(0)) == [0.5, 0.5]
    exact = stack_limits([Limit(x, None, torch.float32), Limit(x, None, torch.float32, flags)])
    assert exact.allowed is None
    assert exact.undecided is not None
    assert exact.undecided.tolist() == [[False, False], [True, False]]
    assert exact.undecided.dtype is torch.bool
    second = exact.of_draw(1)
    assert (second.allowed, second.undecided is not None and second.undecided.tolist()) == (None, [True, False])
    single = stack_limits([scalar])
    assert (single.expected.shape, single.expected.data_ptr()) == ((1, 2), x.data_ptr()), "a view"


def describe(result: list[float], allowed: Tensor | None = None, undecided: Tensor | None = None) -> str | None:
    expected = torch.tensor([1.0, 2.0, INF])
    return describe_difference(torch.tensor(result), Limit(expected, allowed, torch.float32, undecided))


def test_a_difference_is_said_in_a_line() -> None:
    near = torch.tensor([0.5, 0.25, 0.25])
    assert describe([1.0, 2.0, INF]) is None
    assert describe([1.5, 1.75, INF], near) is None
    assert describe([1.0, 2.5, INF]) == "1 of 3 entries differ, the worst by 0.5"
    assert describe([3.0, 1.5, INF], near) == "2 of 3 entries differ, the worst by 2"
    assert describe([1.0, NAN, INF], near) == "1 of 3 entries differ, the worst by nan"
    assert describe([1.0, 9.0, INF], None, torch.tensor([False, True, False])) is None
    assert (
        describe([8.0, 9.0, INF], None, torch.tensor([False, True, False])) == "1 of 3 entries differ, the worst by 7"
    )
    assert "given shape (2,) and torch.float32; expected shape (3,)" in (describe([1.0, 2.0]) or "")
    limit = Limit(torch.tensor([1.0]), None, torch.float16)
    assert "given shape (1,) and torch.float32; expected shape (1,) and torch.float16" in (
        describe_difference(torch.tensor([1.0]), limit) or ""
    )
