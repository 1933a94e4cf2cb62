import doctest

import pytest

from opsmith.results import intervals
from opsmith.results.intervals import estimate_difference, estimate_pass_at_k, estimate_share
from opsmith.results.metrics import pass_at_k

COUNTS = [(64, 0), (64, 3), (64, 20), (64, 64)]


@pytest.mark.parametrize("k", [1, 8, 64])
def test_the_value_is_pass_at_k_and_lies_in_its_interval(k: int) -> None:
    found = estimate_pass_at_k(COUNTS, k)
    assert found is not None
    assert found.value == pytest.approx(sum(pass_at_k(n, c, k) for n, c in COUNTS) / len(COUNTS))
    assert found.low <= found.value <= found.high
    assert (found.tasks, found.samples) == (4, 256)


@pytest.mark.parametrize(("n", "k"), [(8, 1), (8, 8), (64, 1), (64, 4)])
@pytest.mark.parametrize("rates", [[0.1, 0.3, 0.5, 0.9], [0.02] * 26, [0.0, 0.02, 0.95], [0.5]])
def test_an_interval_covers_at_least_about_as_often_as_it_says(rates: list[float], n: int, k: int) -> None:
    import numpy as np

    rng, true = np.random.default_rng(0), 1 - sum((1 - rate) ** k for rate in rates) / len(rates)
    draws = [estimate_pass_at_k([(n, int(c)) for c in rng.binomial(n, rates)], k) for _ in range(500)]
    assert sum(found.low <= true <= found.high for found in draws) / 500 >= 0.92


def test_no_right_sample_of_64_is_no_proof_that_there_is_none() -> None:
    none, every = estimate_pass_at_k([(64, 0)], 1), estimate_pass_at_k([(64, 64)], 1)
    assert none is not None
    assert every is not None
    assert (none.low, none.high) == (0.0, pytest.approx(0.0566, abs=1e-4))
    assert (every.low, every.high) == (pytest.approx(0.9434, abs=1e-4), 1.0)
    assert str(estimate_share(0, 64)) == "0.000 [0.000, 0.057]"
    assert estimate_share(0, 0) is estimate_pass_at_k([(0, 0)], 1) is None


def test_the_examples_of_intervals_hold() -> None:
    assert doctest.testmod(intervals).failed == 0


def test_too_few_samples_have_no_estimate() -> None:
    assert estimate_pass_at_k([(4, 1)], k=8) is None
    assert estimate_pass_at_k([], k=1) is None


def test_a_run_does_not_differ_from_itself_and_a_clear_gain_is_seen() -> None:
    low = {"a": (64, 4), "b": (64, 10)}
    high = {"a": (64, 40), "b": (64, 50), "c": (64, 1)}
    same = estimate_difference(low, low, k=1)
    assert same is not None
    assert same.value == 0
    assert same.low < 0 < same.high
    gain = estimate_difference(high, low, k=1)
    assert gain is not None
    assert gain.low > 0
    assert gain.tasks == 2


def test_an_interval_of_pass_at_n_holds_its_value_and_reaches_both_ways() -> None:
    rare = estimate_pass_at_k([(8, 1)] * 10 + [(8, 0)] * 10, k=8)
    assert rare is not None
    assert rare.low < rare.value == 0.5 < rare.high
