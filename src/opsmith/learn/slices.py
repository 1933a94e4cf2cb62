"""A round, sampled in the slices that its policy deals out: from the store alone, so that a round that was broken off
is dealt out in the same way again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from opsmith.errors import ProviderError
from opsmith.learn.compose import Composer
from opsmith.learn.identity import ORDER
from opsmith.learn.policies import (
    BanditPolicy,
    CheapestPolicy,
    DealingPolicy,
    Proposer,
    RoundPlan,
    Slice,
    choose_arm,
    list_ids,
)
from opsmith.learn.sample import sample_round
from opsmith.learn.session import RunSession
from opsmith.records import Task, Usage
from opsmith.results.by_model import find_solvers
from opsmith.store import Store
from opsmith.store.proposers import SampleEnd, count_samples, list_right_samples, read_ends, sum_bills
from opsmith.store.rows import RoundInfo, SampleKey

_NOTHING = {SampleEnd.FAILED, SampleEnd.EXHAUSTED}


def read_past(session: RunSession, policy: DealingPolicy, plan: RoundPlan) -> RoundPlan:
    """The plan with what its policy goes by: the order of prices, or what the models did in earlier rounds."""
    if isinstance(policy, CheapestPolicy):
        info = session.store.read_info(session.run)
        return plan if info is None else replace(plan, models=tuple(info.versions[ORDER]))
    if isinstance(policy, BanditPolicy):
        return replace(plan, arms=read_arms(session.store, session.run, plan.models, plan.number))
    return plan


def read_arms(store: Store, run: str, models: Sequence[str], before: int) -> tuple[Proposer, ...]:
    """What each model did in the rounds before one; their money apart."""
    counts = count_samples(store, run, before)
    solvers = list(find_solvers(list_right_samples(store, run, before), models).values())
    return tuple(
        Proposer(model, sum(count.verdicts for count in counts if count.model == model), solvers.count(model))
        for model in models
    )


def count_unjudged(session: RunSession, policy: DealingPolicy, info: RoundInfo) -> int:
    """The samples of a round that is over and have no verdict. Of one in slices, whose plan is what it may come to at
    most, those that were tried."""
    judged_ids = session.store.judged_ids(session.run, info.number)
    count = len(read_ends(session.store, session.run, info.number)) if policy.is_sliced else info.planned
    return count - len(judged_ids)


async def sample_slices(
    session: RunSession,
    policy: DealingPolicy,
    plan: RoundPlan,
    tasks: dict[str, Task],
    composer: Composer,
    joined: Sequence[SampleKey] = (),
) -> None:
    """Sample a round to its end. `joined`: samples of no proposer, made with its first slice. Returns early when the
    session halts."""
    dealt, idle = list[Slice](), set[str]()
    own_ids = list_ids(plan) if policy.is_sliced else frozenset()
    while not session.halt:
        ends = _read_own(session, plan, own_ids)
        dealt_keys = policy.plan_slice(plan, dealt, ends, _make_chooser(session, idle))
        keys = dealt_keys if dealt else (*joined, *dealt_keys)
        earlier = [*joined, *(key for keys in dealt for key in keys)] if dealt else []
        is_last = ends.keys() <= {key.id for key in (*earlier, *keys)}  # else a later slice has begun
        if keys and is_last:
            await sample_round(session, keys, tasks, composer, earlier)
            await asyncio.wrap_future(session.store.put([]))
        if not dealt_keys:
            break
        if policy.is_sliced:
            _note_silence(session, dealt_keys, idle, is_last)
        dealt.append(dealt_keys)


def _read_own(session: RunSession, plan: RoundPlan, own_ids: frozenset[str]) -> dict[str, SampleEnd]:
    """What the round's own samples have come to; nothing is asked where nothing depends on it."""
    if not own_ids:
        return {}
    return {name: end for name, end in read_ends(session.store, session.run, plan.number).items() if name in own_ids}


def _make_chooser(session: RunSession, idle: set[str]) -> Callable[[Sequence[Proposer], int], str | None]:
    """Whose the next slice is, of the models that are asked and not `idle`; None: nobody is left."""

    def choose_model(arms: Sequence[Proposer], size: int) -> str | None:
        asked_arms = [arm for arm in arms if arm.model not in session.left_out and arm.model not in idle]
        bills = sum_bills(session.store, session.run)
        paid = [
            replace(arm, usd=Usage.total(usage for (name, _), usage in bills.items() if name == arm.model).cost_usd)
            for arm in asked_arms
        ]
        return choose_arm(paid, size) if paid else None

    return choose_model


def _note_silence(session: RunSession, dealt_keys: Slice, idle: set[str], is_last: bool) -> None:
    """A model without one answer in a slice is asked no more: in this round where it has nothing more, as stored rows
    say; in this session where it failed in it: `is_last`, else that was in an earlier one."""
    model, ends = dealt_keys[0].model, read_ends(session.store, session.run, dealt_keys[0].round)
    came = {ends[key.id] for key in dealt_keys if key.id in ends}
    if came == {SampleEnd.EXHAUSTED} or (is_last and came and came <= _NOTHING):
        idle.add(model)
    if is_last and SampleEnd.FAILED in came and came <= _NOTHING and not session.halt:
        messages = [message for _, _, message in session.store.read_failures(session.run, dealt_keys[0].round)]
        problem = f"it answered none of {len(dealt_keys)} samples; last: {messages[-1]}"
        session.leave_out(model, ProviderError(problem))
