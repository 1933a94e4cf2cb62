import pytest

from opsmith.results.intervals import estimate_difference, estimate_pass_at_k
from opsmith.results.metrics import mean_pass_at_k

COUNTS = [(64, 0), (64, 3), (64, 20), (64, 64)]


@pytest.mark.parametrize("k", [1, 8, 64])
def test_the_value_is_pass_at_k_and_lies_in_its_interval(k: int) -> None:
    found = estimate_pass_at_k(COUNTS, k)
    assert found is not None
    assert found.value == pytest.approx(mean_pass_at_k(COUNTS, k))
    assert found.low <= found.value <= found.high
    assert (found.tasks, found.samples) == (4, 256)


def test_an_interval_covers_about_as_often_as_it_says() -> None:
    import numpy as np

    rates, rng = np.array([0.1, 0.3, 0.5, 0.9]), np.random.default_rng(0)
    covered = 0
    for i in range(200):
        drawn = [(64, int(c)) for c in rng.binomial(64, rates)]
        found = estimate_pass_at_k(drawn, 1, seed=i, resamples=400)
        assert found is not None
        covered += found.low <= rates.mean() <= found.high
    assert 0.88 <= covered / 200 <= 0.99


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


def test_an_interval_holds_its_value_where_redrawn_samples_lose_what_was_found_once() -> None:
    rare = estimate_pass_at_k([(8, 1)] * 20, k=8)
    assert rare is not None
    assert (rare.value, rare.high) == (1.0, 1.0)
    assert rare.low < 0.7
