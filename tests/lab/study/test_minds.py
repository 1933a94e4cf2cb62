"""The instruments on known minds: what is planted is found, and nothing else."""

import numpy as np
import pytest

from opsmith_lab.evaluation.repetition import LEVEL
from opsmith_lab.study.adaptation import find_gains, rank_proposals
from opsmith_lab.study.minds import MINDS
from opsmith_lab.study.proof import IGNORANT, prove_instruments
from opsmith_lab.study.synthetic import draw_surfaces, hash_surfaces, list_synthetic
from opsmith_lab.study.trajectory import BlackBox, Domain

SYNTHETIC = "7ed69e6ff60e65c997080651a5eab7ef5193038a2061ce6f8d37c51d9a973ee5"


@pytest.fixture(scope="module")
def proof():
    return prove_instruments(problems=48, copies=3, repetitions=200)


def find_p(comparisons, first, second, measure):
    return next(
        each.result.p
        for each in comparisons
        if {each.first, each.second} == {first, second} and each.measure == measure
    )


def test_those_who_look_at_values_are_told_from_those_who_do_not(proof):
    p = {mind: result.p for mind, result in proof.adaptation.items()}
    assert {mind for mind in MINDS if p[mind] < LEVEL} == set(MINDS) - set(IGNORANT)


def test_every_mind_is_told_from_every_other(proof):
    closest: dict[tuple[str, str], float] = {}
    for each in proof.apart:
        pair = each.first, each.second
        closest[pair] = min(closest.get(pair, 1.0), each.result.p)
    assert len(closest) == len(MINDS) * (len(MINDS) - 1) / 2
    assert {pair for pair, p in closest.items() if p >= LEVEL} <= {("searcher-10", "reciter")}  # by adaptation alone


def test_copies_and_greed_are_told_apart(proof):
    assert find_p(proof.apart, "copier", "reciter", "copies") < 0.001
    assert find_p(proof.apart, "greedy-mind", "searcher-100", "greed") < 0.001
    assert find_p(proof.apart, "greedy-mind", "reciter", "copies") == 1.0
    assert proof.means["copier"]["copies"] == pytest.approx(0.88, abs=0.02)
    assert proof.means["greedy-mind"]["greed"] == 1.0


def test_a_mind_is_not_told_from_itself(proof):
    assert sum(each.result.p < 0.01 for each in proof.equal) <= 1  # of 30


def test_null_rates_keep_their_promise(proof):
    rates = {what: null.rate for what, null in proof.null_rates.items()}
    assert len(rates) == 6
    assert all(0.01 <= rate <= 0.1 for rate in rates.values()), rates  # of 200 repetitions only


def test_more_problems_find_more_and_a_rare_searcher_needs_more_of_them(proof):
    power = {what: {point.problems: point.power for point in points} for what, points in proof.power.items()}
    always, rarely = power["adaptation of searcher-100"], power["adaptation of searcher-10"]
    assert always[8] > 0.9
    assert rarely[8] < 0.6 < rarely[48]


def test_the_synthetic_problems_are_the_same_everywhere():
    assert hash_surfaces(draw_surfaces()) == SYNTHETIC
    assert draw_surfaces(3) == draw_surfaces()[:3]
    assert hash_surfaces(draw_surfaces(seed=1)) != SYNTHETIC


def test_a_proposal_is_ranked_on_every_problem_and_a_lost_one_on_none():
    domain = Domain((0.0,), (1.0,))
    boxes = [
        BlackBox(f"at {place}", "near", domain, lambda points, place=place: abs(points[:, 0] - place))
        for place in (0.0, 1.0)
    ]
    table = rank_proposals(boxes, [np.array([[0.1], [np.nan], [0.2]]), np.array([[0.9], [0.8]])])
    assert table.tolist() == [
        [pytest.approx(1 / 6), pytest.approx(5 / 6)],
        [pytest.approx(5 / 6), pytest.approx(1 / 6)],
    ]
    assert find_gains(table) == pytest.approx([2 / 3, 2 / 3])
    with pytest.raises(ValueError, match="look alike"):
        rank_proposals([*boxes, list_synthetic(1)[0]], [np.array([[0.1]])] * 3)
