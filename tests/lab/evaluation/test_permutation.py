"""Permutation tests: exact where they are small, honest where they are not."""

from itertools import permutations, product

import numpy as np
import pytest

from opsmith_lab.evaluation.permutation import FEW, permute_columns, permute_signs
from opsmith_lab.evaluation.repetition import REPETITIONS, find_null_rate


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_small_test_of_signs_counts_all_arrangements(rng):
    values = [3.0, 1.0, -0.5, 2.0]
    sums = [abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=4)]
    result = permute_signs(values, rng)
    assert result.is_exact
    assert result.arrangements == 16
    assert result.statistic == pytest.approx(5.5 / 4)
    assert result.p == sum(each >= 5.5 for each in sums) / 16


def test_a_small_test_of_columns_counts_all_arrangements(rng):
    table = rng.normal(size=(4, 4))
    sums = [sum(table[row, column] for row, column in enumerate(order)) for order in permutations(range(4))]
    result = permute_columns([table], rng)
    assert result.is_exact
    assert result.arrangements == 24
    assert result.p == pytest.approx(sum(each <= np.trace(table) + 1e-12 for each in sums) / 24)


def test_columns_stay_within_their_stratum(rng):
    low, high = np.full((3, 3), 0.0), np.full((3, 3), 1.0)
    result = permute_columns([low, high], rng)
    assert result.arrangements == 36
    assert result.p == 1.0  # nothing differs within a stratum


def test_equal_pairs_say_nothing(rng):
    assert permute_signs([0.0] * 40, rng).p == 1.0
    assert permute_columns([np.full((20, 20), 0.3)], rng).p == 0.5  # mid-p: half of the ties


def test_what_is_plain_has_the_smallest_p(rng):
    assert permute_signs([1.0] * 30, rng).p == pytest.approx(0.5 / 1000)
    assert permute_columns([1 - np.eye(12)], rng).p == pytest.approx(0.5 / 1000)


@pytest.mark.parametrize("draw", [
    lambda rng: permute_signs(rng.normal(size=12).tolist(), rng),
    lambda rng: permute_signs(rng.integers(-2, 3, 30).tolist(), rng),  # many ties
    lambda rng: permute_columns([rng.normal(size=(9, 9)) + rng.normal(size=9)], rng),
    lambda rng: permute_columns([rng.integers(0, 3, (7, 7)) * 1.0, rng.integers(0, 2, (5, 5)) * 1.0], rng),
], ids=["signs", "signs with ties", "columns", "strata with ties"])  # fmt: skip
def test_where_nothing_is_to_be_found_p_is_below_a_twentieth_in_a_twentieth(draw):
    null = find_null_rate(draw)
    assert null.repetitions == REPETITIONS
    assert null.is_honest, null


def test_a_test_of_few_arrangements_promises_less_and_says_so():
    null = find_null_rate(lambda rng: permute_signs(rng.normal(size=6).tolist(), rng))
    assert null.arrangements < FEW
    assert null.rate <= 0.05
