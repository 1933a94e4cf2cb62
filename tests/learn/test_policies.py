"""How a round is dealt out: pure functions of rows, the same whenever and however often they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from opsmith.learn.policies import POLICIES, Ends, Proposer, RoundPlan, Slice, choose_arm
from opsmith.store.proposers import SampleEnd
from opsmith.store.rows import JOIN

MODELS = ("a", "b", "c")
PLAN = RoundPlan("r", 0, ("t", "u"), MODELS, 16, (0.5, 1.0), arms=tuple(map(Proposer, MODELS)))


def deal_round(policy: str, plan: RoundPlan, right: Sequence[tuple[str, str]] = ()) -> tuple[list[Slice], Ends]:
    """All slices of a round in which these (model, task) are right and all else is wrong."""
    slices: list[Slice] = []
    ends: dict[str, SampleEnd] = {}
    while part := POLICIES[policy].plan_slice(plan, slices, ends, choose_arm):
        slices.append(part)
        ends |= {key.id: SampleEnd.RIGHT if (key.model, key.task) in right else SampleEnd.WRONG for key in part}
    return slices, ends


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_round_is_dealt_out_again_from_its_rows_alone(policy: str) -> None:
    slices, ends = deal_round(policy, PLAN, [("b", "t"), ("c", "u")])
    again: list[Slice] = []
    while part := POLICIES[policy].plan_slice(PLAN, again, ends, lambda proposers, size: None):
        again.append(part)
    assert again == slices
    keys = [key for part in slices for key in part]
    assert len({key.id for key in keys}) == len(keys) <= POLICIES[policy].count_samples(PLAN)
    assert {key.model for key in keys} == set(MODELS)
    assert JOIN not in {key.model for key in keys}


def test_each_makes_every_sample_by_every_model_and_a_budget_is_shared_evenly() -> None:
    [keys], _ = deal_round("each", PLAN)
    assert len(keys) == POLICIES["each"].count_samples(PLAN) == 3 * 2 * 2 * 16
    [few], _ = deal_round("each", replace(PLAN, arms=(), limit=12))
    assert sorted((key.model, key.task, key.temperature) for key in few) == sorted(
        (model, task, temperature) for model in MODELS for task in "tu" for temperature in (0.5, 1.0)
    )


def test_the_next_model_is_asked_for_what_is_still_unsolved() -> None:
    slices, _ = deal_round("cheapest-first", PLAN, [("a", "t")])
    assert [({key.model for key in part}, {key.task for key in part}) for part in slices] == [
        ({"a"}, {"t", "u"}),
        ({"b"}, {"u"}),
        ({"c"}, {"u"}),
    ]
    cut, _ = deal_round("cheapest-first", replace(PLAN, arms=(), limit=70), [("a", "t")])
    assert [len(part) for part in cut] == [64, 6]
    assert len(deal_round("cheapest-first", PLAN, [("a", "t"), ("a", "u")])[0]) == 1


def test_a_bandits_slices_are_eighths_and_every_model_is_tried_with_a_small_one_first() -> None:
    slices, _ = deal_round("bandit", PLAN, [("b", "t")])
    total = POLICIES["bandit"].count_samples(PLAN)
    assert total == 64
    assert max(map(len, slices)) <= total // 8
    assert [(part[0].model, len(part)) for part in slices[:3]] == [("a", 2), ("b", 2), ("c", 2)]
    assert all(len({key.model for key in part}) == 1 for part in slices)
    places = [(key.number, key.temperature, key.task) for part in slices for key in part]
    assert len(set(places)) == len(places), "no sample is made twice"


def test_the_bandit_goes_by_solved_tasks_per_usd_and_by_samples_where_a_price_is_not_known() -> None:
    good, cheap, idle = Proposer("good", 32, 4, 4.0), Proposer("cheap", 32, 3, 0.1), Proposer("idle", 32, 0, 0.01)
    assert choose_arm([good, cheap, idle], 8) == "cheap"
    unpriced = [Proposer("good", 32, 4, None), Proposer("cheap", 32, 1, 0.1), Proposer("idle", 32, 0, 0.01)]
    assert choose_arm(unpriced, 8) == "good"
    assert choose_arm([*unpriced, Proposer("new")], 8) == "new"
    assert choose_arm([Proposer("good", 800, 4, 1.0), Proposer("rare", 1, 0, 0.001)], 8) == "rare"
