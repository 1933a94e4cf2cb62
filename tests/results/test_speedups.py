"""Metrics of faster programs: every task counts, what cannot be said counts as not fast, and intervals are of tasks."""

import doctest
import importlib

import pytest

from opsmith.records import Outcome, Stage, Usage
from opsmith.results.speedups import (
    choose_harder_partner,
    correct_within,
    estimate_fast_share,
    estimate_mean_ratio,
    list_fast_shares,
    measure_spread,
    price_gain,
)
from opsmith.results.states import AttemptState, name_state

RATIOS = [3.0, 1.5, 1.0, 0.5, None, None]


def test_a_task_without_a_ratio_counts_as_a_task_that_is_not_fast():
    shares = {row.threshold: row.share.value for row in list_fast_shares(RATIOS, (0.5, 1.0, 1.5, 2.0, 4.0))}
    assert shares == {0.5: 4 / 6, 1.0: 3 / 6, 1.5: 2 / 6, 2.0: 1 / 6, 4.0: 0.0}


def test_fast_p_falls_with_p_and_lies_in_its_interval():
    shares = list_fast_shares(RATIOS)
    values = [row.share.value for row in shares]
    assert values == sorted(values, reverse=True)
    assert all(row.share.low <= row.share.value <= row.share.high for row in shares)
    assert all(row.share.tasks == len(RATIOS) for row in shares)


def test_means_are_of_the_ratios_that_can_be_said():
    mean, geometric = estimate_mean_ratio(RATIOS), estimate_mean_ratio(RATIOS, is_geometric=True)
    assert mean is not None
    assert geometric is not None
    assert mean.value == pytest.approx(1.5)
    assert geometric.value == pytest.approx((3.0 * 1.5 * 0.5) ** 0.25)
    assert mean.tasks == geometric.tasks == 4


@pytest.mark.parametrize("is_geometric", [False, True])
def test_a_mean_over_fewer_than_five_tasks_has_no_interval_and_says_how_many(is_geometric):
    one, five = (estimate_mean_ratio(ratios, is_geometric) for ratios in ([5.2], [1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (one.low, one.high, str(one)) == (None, None, "5.200 (n = 1)")
    assert five.low < five.value < five.high


def test_no_task_of_many_that_is_fast_is_no_proof_that_none_is():
    none, every = estimate_fast_share([None] * 64, 1.0), estimate_fast_share([2.0] * 64, 1.0)
    assert (none.low, none.high) == (0.0, pytest.approx(0.0566, abs=1e-4))
    assert (every.low, every.high) == (pytest.approx(0.9434, abs=1e-4), 1.0)


def test_over_nothing_there_is_no_estimate():
    assert estimate_mean_ratio([None, None]) is None
    assert estimate_mean_ratio([], is_geometric=True) is None
    assert estimate_fast_share([], 1.0) is None
    assert list_fast_shares([]) == ()


def test_the_faster_of_two_partners_is_the_one_to_beat():
    assert choose_harder_partner([1.9, 1.2]) == 1.2
    assert choose_harder_partner([None, 1.2]) == 1.2
    assert choose_harder_partner([None, None]) is None


def test_spread_needs_two_values_and_is_free_of_units():
    assert measure_spread([2.0]) is None
    assert measure_spread([1.0, 2.0, 4.0]) == pytest.approx(measure_spread([10.0, 20.0, 40.0]))


def test_a_gain_is_priced_by_the_per_cent_and_what_is_not_known_stays_so():
    cost = price_gain(1.25, Usage(1, 40, 10, 0, None), None)
    assert cost is not None
    assert (cost.usd, cost.tokens, cost.measured_seconds) == (None, 2.0, None)
    assert price_gain(1.0, Usage(), 1.0) is price_gain(None, Usage(), 1.0) is None


def test_more_attempts_never_make_fewer_tasks_right():
    shares = correct_within({"a": 1, "b": 3, "c": None, "d": 3}, 4)
    assert [share.value for share in shares] == [0.25, 0.25, 0.75, 0.75]


@pytest.mark.parametrize(
    ("stage", "outcome", "state"),
    [
        (Stage.FORMAT, Outcome.REFUSED, AttemptState.GENERATION),
        (Stage("PARSE"), Outcome.REFUSED, AttemptState.COMPILE),
        (Stage("BUILD"), Outcome.REFUSED, AttemptState.COMPILE),
        (Stage.RUN, Outcome.REFUSED, AttemptState.RUNTIME),
        (Stage.MATCH, Outcome.REFUSED, AttemptState.MISMATCH),
        (Stage.MATCH, Outcome.PASSED, AttemptState.CORRECT),
        (Stage.RUN, Outcome.UNJUDGED, None),
        (None, None, None),
    ],
)
def test_a_verdict_is_one_of_five_states_in_any_language(stage, outcome, state):
    assert name_state(stage, outcome) is state


@pytest.mark.parametrize("name", ["speedups", "states"])
def test_the_examples_in_the_text_hold(name):
    assert doctest.testmod(importlib.import_module(f"opsmith.results.{name}")).failed == 0
