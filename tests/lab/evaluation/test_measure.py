"""Ratios of arms pair what is hard for both, and their intervals are of tasks and seeds."""

import doctest

from opsmith_lab.evaluation import measure
from opsmith_lab.evaluation.measure import bound_ratio


def test_what_is_hard_for_both_arms_is_in_no_paired_ratio() -> None:
    base = [[1.0] * 13 + [0.0] * 13]
    equal, opposite = bound_ratio(base, base), bound_ratio([base[0][::-1]], base)
    assert equal is not None
    assert opposite is not None
    assert equal[0] == opposite[0] == 1.0
    assert 0.85 < equal[1] < 1 < equal[2] < 1.2, "the same tasks: however they are drawn, no arm is much better"
    assert opposite[1] < 0.5
    assert opposite[2] > 2
    assert bound_ratio([[1.0] * 4], [[1.0] * 4]) == (1.0, None, None), "four tasks are too few to draw anew"
    assert bound_ratio([[1.0] * 5], [[0.0] * 5]) is None


def test_a_paired_interval_is_of_the_seeds_too() -> None:
    base, arm = [[1.0] * 5, [1.0] * 5], [[1.0] * 5, [0.0] * 5]
    found = bound_ratio(arm, base)
    assert found is not None
    assert (found[0], found[1] < 0.1, found[2] > 0.9) == (0.5, True, True), "on one seed all, on the other none"


def test_the_examples_of_the_estimates_hold() -> None:
    assert doctest.testmod(measure).failed == 0
