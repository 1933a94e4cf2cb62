"""What a trajectory is like, on trajectories made by hand."""

import math

import numpy as np
import pytest

from opsmith_lab.study.measures import (
    CELLS,
    MEASURES,
    find_best_values,
    mark_copies,
    measure_coverage,
    measure_trajectory,
)
from opsmith_lab.study.trajectory import Domain, Trajectory

SQUARE = Domain((0.0, 0.0), (10.0, 20.0))
NAN = math.nan


def make_trajectory(*rows: tuple[float, float, float]) -> Trajectory:
    table = np.array(rows)
    return Trajectory(SQUARE, table[:, :2], table[:, 2])


def test_every_measure_has_its_definition_and_the_other_way_round():
    assert list(measure_trajectory(make_trajectory((1, 1, 0)))) == list(MEASURES)


def test_the_best_value_so_far_never_rises_and_a_lost_evaluation_changes_nothing():
    assert find_best_values(np.array([NAN, 3, 4, NAN, 1]))[1:].tolist() == [3, 3, 3, 1]
    assert measure_trajectory(make_trajectory((NAN, NAN, NAN)))["best"] is None


def test_coverage_counts_cells_and_the_upper_edges_belong_to_the_last_ones():
    assert measure_coverage(np.array([[0, 0], [0.05, 0.1], [1, 1], [0.95, 0.95]])) == 2 / math.prod(CELLS)
    assert measure_coverage(np.array([[0.1] * 5, [0.9] * 5, [0.2] * 5])) == 2 / 32
    assert measure_coverage(np.array([[0.1] * 3])) is None


def test_length_is_in_diameters_of_the_domain():
    corners = make_trajectory((0, 0, 0), (10, 20, 0), (NAN, NAN, NAN), (0, 0, 0))
    assert measure_trajectory(corners)["length"] == pytest.approx(2.0)
    assert measure_trajectory(make_trajectory((5, 5, 0)))["length"] == 0


def test_copies_and_greed_are_two_things():
    copier = measure_trajectory(make_trajectory((1, 1, 0), (1, 1, 0), (1, 1, 0), (9, 9, 5)))
    assert (copier["copies"], copier["greed"]) == (2 / 3, 0)
    greedy = measure_trajectory(make_trajectory((1, 1, 5), (1.5, 2, 4), (1.0, 1.5, 6), (2.1, 2, 3)))
    assert (greedy["copies"], greedy["greed"]) == (0, 2 / 3)  # the last one is 6 % away along the first axis
    assert measure_trajectory(make_trajectory((1, 1, 0), (1, 1, 0)))["greed"] is None


def test_the_incumbent_is_the_best_point_before_not_the_last_one():
    moved = make_trajectory((1, 1, 1), (9, 19, 2), (9, 19.1, 3))
    assert measure_trajectory(moved)["greed"] == 0


def test_points_that_were_lost_are_no_copies_of_each_other():
    lost = make_trajectory((NAN, NAN, NAN), (NAN, NAN, NAN), (1, 1, 2))
    assert not mark_copies(lost.points).any()
    assert measure_trajectory(lost)["lost"] == pytest.approx(2 / 3)


def test_a_domain_whose_corners_are_exchanged_is_refused():
    with pytest.raises(ValueError, match="lower < upper"):
        Domain((0.0, 1.0), (1.0, 1.0))
    assert Domain((-0.1,), (0.7,)).from_unit(np.array([1.0])) == (0.7,)
