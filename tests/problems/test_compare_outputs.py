"""What is compared and what is said, by limits made by hand: borders, infinities, several draws, forms and hints."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from opsmith.problems.compare import NO_CLUES, Agreement, Clues, Wording, compare_outputs, take_larger
from opsmith.problems.draws import Draw
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import OutputTensors
from opsmith.problems.tolerance import Limit

PROBLEM = read_problem("""
problem: pair
dims: {M: 2, N: 6}
inputs: [{name: x, dtype: fp64, shape: [M, N], data: normal}]
outputs: [{name: y, dtype: fp64, shape: [M, N]}, {name: place, dtype: int64, shape: [M]}]
reference: |
  def pair(x):
      return x, x.argmax(-1)
""").problem
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # NumPy's on inf - inf and 0/0 reach nobody

DRAWS, INF, NAN = 3, math.inf, math.nan
VALUES = torch.tensor([[3.0, -1.5, 0.25, 7.0, -20.0, 11.0], [5.0, 2.5, -0.75, 13.0, 40.0, -9.0]], dtype=torch.float64)
PLACES = torch.tensor([5, 4])
Change = Callable[[Tensor], object]


def stack(tensor: Tensor) -> Tensor:
    return torch.stack([tensor] * DRAWS)


def compare(
    change_values: Change | None = None,
    change_places: Change | None = None,
    *,
    expected: Tensor = VALUES,
    allowed: float = 0.5,
    undecided: Tensor | None = None,
    label: str = "base seed {}",
    clues: Clues = NO_CLUES,
    wording: Wording | None = None,
) -> Agreement:
    """Of results that are right but for these changes in place, of all draws stacked."""
    values, places = stack(expected), stack(PLACES)
    limits = [
        [Limit(values.clone(), torch.full_like(values, allowed), torch.float64)],
        [Limit(places.clone(), None, torch.int64, undecided)],
    ]
    for change, tensor in ((change_values, values), (change_places, places)):
        if change is not None:
            change(tensor)
    return compare_outputs(PROBLEM, limits, [[values], [places]], label.format, wording or Wording(), clues)


def put(value: float, *index: int) -> Change:
    return lambda tensor: tensor.__setitem__(index, value)


def hint(change: Change, **options: Any) -> str:
    (finding,) = compare(change, **options).errors
    return finding.remedy


def test_an_entry_may_lie_as_far_away_as_is_allowed_and_no_farther() -> None:
    assert compare() == ((), 0.0)
    assert compare(put(3.5, 1, 0, 0)) == ((), 0.5)
    assert compare(put(3.0 - 0.5, 1, 0, 0)) == ((), 0.5)
    agreement = compare(put(math.nextafter(3.5, 4), 1, 0, 0))
    assert (len(agreement.errors), agreement.max_abs_error) == (1, pytest.approx(0.5))


def test_the_first_wrong_draw_is_told_with_all_that_is_wrong_on_it() -> None:
    def spoil(values: Tensor) -> None:
        values[1, 0, 3], values[2, 1, 5], values[1, 1, 2] = 9.0, 100.0, 3.25

    agreement = compare(spoil, lambda places: (put(0, 1, 1)(places), put(9, 2, 0)(places)))
    values, places = agreement.errors
    assert agreement.max_abs_error == 109.0
    assert (values.kind, values.where) == ("DATA", "output y (fp64 [M, N], index outermost first), base seed 1")
    assert values.given == "9 at index [0, 3]; 2 of 12 entries differ, max abs error 4"
    assert values.expected == "7 within 0.5"
    assert places.where == "output place (int64 [M], index outermost first), base seed 1"
    assert (places.given, places.expected) == ("0 at index [1]; 1 of 2 entries differ, max abs error 4", "4 exactly")
    (alone,) = compare(put(100.0, 2, 1, 5), put(9, 1, 0)).errors
    assert alone.where.endswith("base seed 1"), "an output that is right on the first wrong draw is not named"


def test_numbers_are_written_in_full_and_limits_short() -> None:
    (finding,) = compare(put(1234.56789012, 0, 0, 0), allowed=0.00123456).errors
    assert finding.given.startswith("1234.56789 at index [0, 0]")
    assert finding.expected == "3 within 0.00123"
    (finding,) = compare(None, put(12_345_678_901, 0, 0)).errors
    assert finding.given.startswith("12345678901 at index [0]")


def test_undecided_entries_are_not_compared() -> None:
    undecided = torch.zeros(DRAWS, 2, dtype=torch.bool)
    undecided[1, 0] = True
    assert compare(None, put(0, 1, 0), undecided=undecided) == ((), 0.0)
    assert compare(None, put(0, 1, 0), undecided=~(undecided & False)) == ((), 0.0)
    agreement = compare(None, lambda places: (put(0, 1, 0)(places), put(3, 1, 1)(places)), undecided=undecided)
    (finding,) = agreement.errors
    assert finding.given == "3 at index [1]; 1 of 2 entries differ, max abs error 1"
    assert agreement.max_abs_error == 1.0


def test_nan_and_infinity_are_right_where_they_are_expected_and_infinity_alone() -> None:
    infinite = VALUES.clone()
    infinite[0, 0], infinite[1, 1] = INF, -INF
    assert compare(expected=infinite) == ((), 0.0)
    assert compare(put(7.25, 0, 0, 3), expected=infinite) == ((), 0.25)
    assert compare(expected=VALUES * INF) == ((), 0.0)
    for wrong in (put(-INF, 0, 0, 0), put(1e300, 0, 0, 0), put(NAN, 0, 0, 3), put(INF, 0, 0, 3)):
        assert len(compare(wrong, expected=infinite).errors) == 1
    agreement = compare(put(NAN, 0, 0, 3), put(9, 0, 0))
    assert math.isnan(agreement.max_abs_error or 0.0), "NaN is the largest of all distances"
    assert math.isnan(take_larger(NAN, 1.0))
    assert (take_larger(2.0, 1.0), take_larger(1.0, 2.0)) == (2.0, 2.0)


def test_outputs_without_an_entry_are_right() -> None:
    empty, places = torch.zeros(DRAWS, 0), stack(PLACES)
    limits = [[Limit(empty, empty, torch.float32)], [Limit(places, None, torch.int64)]]
    assert compare_outputs(PROBLEM, limits, [[empty], [places]], str) == ((), 0.0)


def compare_forms(results: Sequence[Sequence[Tensor]], wording: Wording | None = None) -> list[tuple[str, str, str]]:
    limits = [[Limit(stack(VALUES), torch.tensor(0.5), torch.float64)], [Limit(stack(PLACES), None, torch.int64)]]
    agreement = compare_outputs(PROBLEM, limits, results, "base seed {}".format, wording or Wording())
    assert agreement.max_abs_error is None
    assert {finding.kind for finding in agreement.errors} == {"OUT"}
    return [(finding.where, finding.given, finding.expected) for finding in agreement.errors]


def test_the_form_of_results_comes_before_their_values() -> None:
    y, place = stack(VALUES), stack(PLACES)
    assert compare_forms([[y]]) == [("results, base seed 0", "1 outputs", "2 (y, place)")]
    assert compare_forms([[y], [place], [y]], Wording("streams"))[0][1] == "3 streams"
    assert compare_forms([[y, y], [place.int()]]) == [
        ("output y, base seed 0", "2 fields", "1, those of fp64"),
        (
            "output place (int64 [M], index outermost first), base seed 0",
            "a tensor of shape (2,) and torch.int32",
            "shape (2,) and torch.int64",
        ),
    ]
    assert compare_forms([[y.transpose(1, 2)], [place]])[0][1:] == (
        "a tensor of shape (6, 2) and torch.float64",
        "shape (2, 6) and torch.float64",
    )
    assert len(compare_forms([[y.float()], [place[:, :1]]])) == 2


@pytest.mark.parametrize(
    ("wording", "name"),
    [(Wording(), "output z_1 (int64 [M]"), (Wording(has_fields=True), "output z, field 1 (int64 [M]")],
)
def test_tensors_of_one_output_are_fields_or_have_names_of_their_own(wording: Wording, name: str) -> None:
    types = tuple(output.types[0] for output in PROBLEM.outputs)
    problem = replace(PROBLEM, outputs=(OutputTensors("z", types),))
    y, place = stack(VALUES), stack(PLACES)
    limits = [[Limit(y, torch.full_like(y, 0.5), torch.float64), Limit(place, None, torch.int64)]]
    (finding,) = compare_outputs(problem, limits, [[y, place + 1]], str, wording).errors
    assert finding.where.startswith(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(NAN, 0, 0, 0), "the result holds NaN"),
        (lambda values: values.zero_(), "the result is all zeros"),
        (lambda values: values.fill_(4.0), "every entry of the result is the same"),
        (lambda values: values.mul_(-1.5), "every entry is -1.5 times the expected one"),
        (lambda values: values.mul_(1.015), "every entry is 1.015 times the expected one"),
        (lambda values: values.copy_(values.flip(-1)), "these are the right values in another order: check the order"),
        (lambda values: values.add_(1.0), "every entry differs: check which values are combined"),
        (lambda values: values[:, 0].add_(1.0), "some entries are right"),
        (put(99.0, 0, 0, 0), "some entries are right"),
    ],
)
def test_the_pattern_of_wrong_entries_is_told(change: Change, words: str) -> None:
    assert hint(change, allowed=1e-3).startswith(words)


def test_what_is_expected_may_be_constant_itself() -> None:
    ones = torch.ones_like(VALUES)
    assert "same" not in hint(lambda values: values.fill_(4.0), expected=ones)
    assert hint(lambda values: values.fill_(4.0), expected=ones).startswith("every entry is 4 times")
    (single,) = compare(put(99.0, 0, 0, 0), wording=Wording(has_fields=True)).errors
    assert single.where.startswith("output y (fp64 [M, N], index outermost first)")
    zeros = torch.zeros_like(VALUES)
    assert hint(lambda values: values.add_(VALUES), expected=zeros, allowed=0.1).startswith("every entry differs"), (
        "no ratio to 0"
    )


@pytest.mark.parametrize(
    ("label", "is_base"),
    [("base seed {}", True), ("case {}", True), ("case {} at odd", False), ("odd seed {}", False)],
)
def test_other_sizes_than_the_base_shape_are_blamed(label: str, is_base: bool) -> None:
    words = hint(put(99.0, 0, 0, 0), label=label)
    assert words.startswith("some entries are right" if is_base else "the base shape was right")


@pytest.mark.parametrize(
    ("values", "is_told"), [([6.0], False), ([6.0, 15.0], True), ([6.0, 15.0 * (1 + 5e-6)], True), ([6.0, 15.0 * (1 + 2e-5)], False)]
)  # fmt: skip
def test_a_factor_is_told_of_two_entries_or_more_that_all_have_it(values: list[float], is_told: bool) -> None:
    expected = torch.tensor([2.0, 5.0], dtype=torch.float64)[: len(values)]
    limit = Limit(expected[None], torch.full((1, len(values)), 1e-9), torch.float64)
    result = torch.tensor([values], dtype=torch.float64)
    (finding,) = compare_outputs(HALVES, [[limit]], [[result]], lambda number: "base").errors
    assert ("every entry is 3 times" in finding.remedy) is is_told


def make_clues(change: str, values: Tensor, held: set[int] | None, missing: int | None = None, own: int = 3) -> Clues:
    """A draw whose reference, so changed, gives these values, and of whose own values a program holds some."""
    value = SimpleNamespace(number=missing, name="mean of x", line=7, text="torch.mean(" + "x" * 200)
    intermediates = SimpleNamespace(values=[*range(own)], find_missing=lambda held: value if missing else None)

    def remember(compute: Callable[..., object]) -> object:
        return ((change, [[values], [PLACES]]),) if "changed" in compute.__name__ else intermediates

    draw = cast(Draw, SimpleNamespace(remember=remember))
    return Clues([draw] * DRAWS, lambda number: held)


def test_a_changed_constant_is_named_near_the_right_values_and_in_other_trials() -> None:
    near, far = VALUES + 0.3, VALUES + 3.0
    for values, label, is_told in ((near, "base seed {}", True), (far, "base seed {}", False), (far, "case {}", True)):
        clues = make_clues("without its 1e-05", values, None)
        words = hint(lambda given, to=values: given.copy_(stack(to) + 1e-3), allowed=0.01, label=label, clues=clues)  # type: ignore[misc]
        assert words.startswith("the reference without its 1e-05 gives these values") is is_told
    clues = make_clues("without its 1e-05", near, None)
    assert "1e-05" not in hint(lambda values: values.add_(0.35), allowed=0.01, clues=clues)
    exact = compare(None, put(0, 0, 0), clues=clues, label="case {}").errors[0]
    assert "1e-05" not in exact.remedy, "what is exact has no constants to change"


def is_named(change: Tensor, result: Tensor, label: str = "base seed {}", **options: Any) -> bool:
    """Whether a change of a constant is told that gives these values."""
    clues = make_clues("without its 1e-05", change, None)
    return "without its 1e-05" in hint(lambda values: values.copy_(stack(result)), label=label, clues=clues, **options)


def test_how_near_the_right_values_a_changed_constant_leaves_the_result() -> None:
    assert is_named(-VALUES - 0.3, -VALUES - 0.3, expected=-VALUES, allowed=0.01), "by the largest magnitude"
    spread = VALUES + 0.3
    spread[0, 0] += 3.0
    assert not is_named(spread, spread, allowed=0.01), "by the farthest entry"
    assert is_named(VALUES + 0.5, VALUES + 0.75, "case {}", allowed=0.25), "as far from the change as is allowed"
    assert not is_named(VALUES + 0.5, VALUES - 99.0, "case {}", allowed=0.25)


@pytest.mark.parametrize(("own", "is_told"), [(1, False), (2, True)])
def test_the_result_alone_is_no_value_on_the_way(own: int, is_told: bool) -> None:
    words = hint(lambda values: values.add_(1.0), clues=make_clues("", VALUES * 9, {0}, 1, own))
    assert ("no stream holds" in words) is is_told


@pytest.mark.parametrize(
    ("held", "missing", "words"),
    [
        ({1}, 2, f"; no stream holds value 2 of 3 of the reference, mean of x in line 7: torch.mean({'x' * 89}; check"),
        ({1}, None, "every entry differs: check"),
        (None, 2, "every entry differs: check"),
    ],
)
def test_a_value_of_the_reference_that_is_not_held_is_named(held: set[int] | None, missing: int, words: str) -> None:
    clues = make_clues("", VALUES * 9, held, missing)
    assert words in hint(lambda values: values.add_(1.0), clues=clues)


HALVES = read_problem("""
problem: halves
dims: {N: 4}
inputs: [{name: x, dtype: fp64, shape: [N], data: normal}]
outputs: [{name: y, dtype: fp64, shape: [N]}]
reference: |
  def halves(x):
      return x / 2
""").problem


def judge_order(expected: list[float], result: list[float]) -> bool:
    """Whether one draw of a vector is told to be in another order."""
    right, values = (torch.tensor([row], dtype=torch.float64) for row in (expected, result))
    limit = Limit(right, torch.full_like(right, 1e-9), torch.float64)
    (finding,) = compare_outputs(HALVES, [[limit]], [[values]], lambda number: "base").errors
    return "in another order" in finding.remedy


@pytest.mark.parametrize(
    ("expected", "result", "is_told"),
    [
        ([0.5, 2.5, 4.5, 8.5], [2.5, 0.5, 8.5, 4.5], True),
        ([0.5, 2.5, 4.5, 4.5], [2.5, 0.5, 4.5, 4.5], False),  # three values
        ([0.5, 2.5, 4.5, 8.5, 9.5], [2.5, 0.5, 8.5, 4.5, 9.5], True),  # the right one among them stays
        ([0.5, 2.5, 4.5, 8.5], [2.5, 0.5, 8.5, 4.5001], False),
        ([0.5, 2.5, 4.5, 8.5], [2.5, 0.5, 8.5, 4.50001], True),  # nearer by 1e5 than to their places
        ([1.0, 2.0, 4.0, 8.0], [2.0, 1.0, 8.0, 4.0], True),  # whole numbers that are all different
        ([1.0, 2.0, 4.0, 8.0, 8.0], [2.0, 1.0, 8.0, 4.0, 2.0], False),
        ([1.0, 1.0, 2.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.0, 1.0, 4.0, 3.0], False),  # whole ones, some of them equal
        ([1.5, 1.5, 2.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.5, 1.5, 4.0, 3.0], True),
        ([0.0, 0.1, 0.2, 0.3, 1000.5], [0.1, 0.0, 0.3, 0.2, 1000.5], False),  # moved by little of the whole range
        ([0.0, 1.5, 3.0, 4.5, 100.5], [1.5, 0.0, 4.5, 3.0, 100.5], True),  # by 1.5 %
        ([0.0, 1.5, 3.0, 4.5, 200.5], [1.5, 0.0, 4.5, 3.0, 200.5], False),  # by 0.75 %
        ([0.0, 1.5, 3.0, 4.5, 100.5], [1.5 + 1.2e-5, 0.0, 4.5, 3.0, 100.5], True),  # the values agree within 1e-5 of that
        ([0.0, 1.5, 3.0, 4.5, 100.5], [1.5 + 1.8e-5, 0.0, 4.5, 3.0, 100.5], False),
        ([0.5, 2.5, 4.5, 4.5 + 3e-5, 8.5], [2.5, 0.5, 8.5, 4.5, 4.5 + 3e-5], True),  # different by more than that
        ([0.5, 2.5, 4.5, 4.5 + 5e-6], [2.5, 0.5, 4.5 + 5e-6, 4.5], False),  # ... by less: three values
        ([INF, 0.5, 2.5, 4.5, 8.5], [0.5, INF, 4.5, 2.5, 8.5], False),  # infinitely far from their places
        ([0.5, 0.5, 0.5, 0.5], [INF, INF, INF, INF], False),
    ],
)  # fmt: skip
def test_another_order_is_told_of_values_that_are_no_accident(
    expected: list[float], result: list[float], is_told: bool
) -> None:
    assert judge_order(expected, result) is is_told
