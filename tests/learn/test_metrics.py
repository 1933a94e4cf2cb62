from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.results.metrics import (
    GroupScore,
    pass_at_k,
    score_by_group,
    score_rates,
)

COUNTS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(COUNTS)
def test_pass_at_k_is_the_share_of_k_subsets_that_hold_a_right_sample(case: tuple[int, int, int]) -> None:
    n, c, k = case
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_equals_the_exact_fraction(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert pass_at_k(n, c, k) == pytest.approx(float(1 - Fraction(comb(n - c, k), comb(n, k))), abs=1e-12)


def test_pass_at_k_is_exact_where_factorials_overflow() -> None:
    assert pass_at_k(1_000_000, 1, 500_000) == pytest.approx(0.5)
    assert pass_at_k(1_000_000, 0, 1_000_000) == 0.0
    assert pass_at_k(64, 64, 1) == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), (4, 5, 1), (4, 1, 0), (0, 0, 1)])
def test_pass_at_k_refuses_what_it_cannot_estimate(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected 1 <= k <= n"):
        pass_at_k(n, c, k)


def test_means_over_tasks() -> None:
    assert score_rates([0.5, 0.0]) == GroupScore(2, 1, 0.25, 0.5)
    assert score_rates([]) == GroupScore(0, 0, None, None)
    rates = {"a_0": 1.0, "b_0": 0.0, "a_1": 0.5}
    groups = {"a_0": "a", "b_0": "b", "a_1": "a"}
    assert score_by_group(rates, groups) == {"a": GroupScore(2, 2, 0.75, 1.0), "b": GroupScore(1, 0, 0.0, 0.0)}
