"""Which model makes which sample of a round, where a run has several: pure functions of stored rows.

A round is a row of slices. Each is sampled to its end before the next one is planned, and one that a later one follows
is over: what it left unjudged is not made any more, so that the plans of all slices are the same whenever they are read
from the store again. `each` is one slice in which every model makes every sample. `cheapest-first` asks the cheapest
for all tasks, then the next one for what is still unsolved. `bandit` deals the samples of one model out in slices and
gives each to the model that solves most for its money.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from opsmith.store.proposers import SampleEnd
from opsmith.store.rows import SampleKey

SHARES = 8  # slices of a bandit's round, at least
FIRST_SHARE = 4  # the slice with which a model is tried first is so much smaller
CURIOSITY = 0.5  # how much a model that was asked for little is preferred
Slice = tuple[SampleKey, ...]
Ends = Mapping[str, SampleEnd]  # by sample's id, of those that left a row
ChooseModel = Callable[[Sequence["Proposer"], int], str | None]  # from what all did, and a slice's size; None: nobody


@dataclass(frozen=True)
class Proposer:
    """What a proposer has done so far."""

    model: str
    verdicts: int = 0
    solved: int = 0  # tasks that nobody had solved before
    usd: float | None = 0.0  # None: not known


@dataclass(frozen=True)
class RoundPlan:
    """What a round is dealt out of."""

    run: str
    number: int
    tasks: tuple[str, ...]
    models: tuple[str, ...]  # proposers; of `cheapest-first` in the order of their prices
    samples: int  # of a task at a temperature, by each model
    temperatures: tuple[float, ...]
    target: str = ""  # the language, where the run chose one
    limit: int | None = None  # how many samples the budget allows
    arms: tuple[Proposer, ...] = ()  # what the models did in earlier rounds; of `bandit`, and without their money
    shares: Mapping[str, int] = field(default_factory=dict)  # samples at a temperature of tasks that have not all


class DealingPolicy(Protocol):
    """How a round is dealt out."""

    is_sliced: bool  # what a later slice holds is decided by what came of the ones before

    def count_samples(self, plan: RoundPlan) -> int:
        """Of the whole round; of one in slices at most."""

    def plan_slice(self, plan: RoundPlan, earlier: Sequence[Slice], ends: Ends, choose_model: ChooseModel) -> Slice:
        """The next slice, or (): the round is over. `choose_model` is asked where no stored row says whose it is."""


class EachPolicy:
    """Every model makes every sample. Fits `DealingPolicy`."""

    is_sliced = False

    def count_samples(self, plan: RoundPlan) -> int:
        return len(self.plan_slice(plan, (), {}, lambda arms, size: None))

    def plan_slice(self, plan: RoundPlan, earlier: Sequence[Slice], ends: Ends, choose_model: ChooseModel) -> Slice:
        return () if earlier else tuple(plan_samples(plan))


class CheapestPolicy:
    """A slice of each model in turn, for the tasks that none before it has solved. Fits `DealingPolicy`."""

    is_sliced = True

    def count_samples(self, plan: RoundPlan) -> int:
        count = len(plan.models) * len(list_cells(plan, ""))
        return count if plan.limit is None else min(count, plan.limit)

    def plan_slice(self, plan: RoundPlan, earlier: Sequence[Slice], ends: Ends, choose_model: ChooseModel) -> Slice:
        model, closed = plan.models[len(earlier) :][:1], find_closed(earlier, ends)
        tasks = tuple(task for task in plan.tasks if task not in closed)
        remaining = None if plan.limit is None else plan.limit - sum(map(len, earlier))
        return tuple(plan_samples(replace(plan, tasks=tasks, models=model, limit=remaining)))


class BanditPolicy:
    """The samples of one model, dealt out over all of them. Fits `DealingPolicy`."""

    is_sliced = True

    def count_samples(self, plan: RoundPlan) -> int:
        return len(list_cells(plan, ""))

    def plan_slice(self, plan: RoundPlan, earlier: Sequence[Slice], ends: Ends, choose_model: ChooseModel) -> Slice:
        cells = list_cells(plan, "")
        size = max(1, len(cells) // max(SHARES, 2 * len(plan.models)))
        ahead = _list_cells_ahead(cells, earlier, find_closed(earlier, ends))[:size]
        if not ahead:
            return ()
        arms = add_slices(plan.arms, earlier, ends)
        model = _find_model(ahead, plan.models, ends) or choose_model(arms, size)
        if model is None:
            return ()
        is_new = not any(arm.verdicts for arm in arms if arm.model == model)
        return tuple(replace(cell, model=model) for cell in ahead[: max(1, size // FIRST_SHARE) if is_new else size])


POLICIES: Mapping[str, DealingPolicy] = {
    "each": EachPolicy(),
    "cheapest-first": CheapestPolicy(),
    "bandit": BanditPolicy(),
}


def plan_samples(plan: RoundPlan) -> list[SampleKey]:
    """Every sample of a round by each of the models, task by task; those that the budget allows are spread evenly over
    the tasks."""
    order = {task: place for place, task in enumerate(plan.tasks)}
    return sorted(
        list(_deal_samples(plan))[: plan.limit], key=lambda key: (order[key.task], key.temperature, key.number)
    )


def list_cells(plan: RoundPlan, model: str) -> list[SampleKey]:
    """The samples of one model in the order in which they are dealt out: the first of every task before a second."""
    return list(_deal_samples(replace(plan, models=(model,))))[: plan.limit]


def _deal_samples(plan: RoundPlan) -> Iterator[SampleKey]:
    for index in range(plan.samples):
        for temperature in plan.temperatures:
            for task in (task for task in plan.tasks if index < plan.shares.get(task, plan.samples)):
                for model in plan.models:
                    yield SampleKey(plan.run, plan.number, task, temperature, index, plan.target, model=model)


def list_ids(plan: RoundPlan) -> frozenset[str]:
    """Of all samples that any slice of the round may hold: rows of others, such as a planner's, do not concern it."""
    return frozenset(cell.id for model in plan.models for cell in list_cells(plan, model))


def find_closed(slices: Sequence[Slice], ends: Ends) -> set[str]:
    """Tasks that need no further sample of the round: solved in these slices, or their file is at fault."""
    over = (SampleEnd.RIGHT, SampleEnd.TASK_FAULT)
    return {key.task for keys in slices for key in keys if ends.get(key.id) in over}


def _list_cells_ahead(cells: Sequence[SampleKey], earlier: Sequence[Slice], closed: set[str]) -> list[SampleKey]:
    """What follows the last slice, less what needs no sample."""
    places = {(cell.number, cell.temperature, cell.task): place for place, cell in enumerate(cells)}
    dealt = [places[key.number, key.temperature, key.task] for keys in earlier for key in keys]
    return [cell for cell in cells[max(dealt, default=-1) + 1 :] if cell.task not in closed]


def _find_model(cells: Sequence[SampleKey], models: Sequence[str], ends: Ends) -> str | None:
    """Who was given a slice that begins with these cells, from the first row that one of them left."""
    named = (replace(cell, model=model) for cell in cells for model in models)
    return next((key.model for key in named if key.id in ends), None)


def choose_arm(arms: Sequence[Proposer], size: int) -> str:
    """The model that the next slice of `size` samples goes to. First each is tried; then the one with most solved tasks
    per USD, relative to the best of them, and a bonus for having been asked little (UCB1), over the price.
    Where a price is not known, or nothing is paid, a sample stands for a USD.

    >>> choose_arm([Proposer("a", 8, 1, 0.2), Proposer("b", 8, 1, 0.1)], 8)
    'b'
    """
    for arm in arms:
        if not arm.verdicts:
            return arm.model
    is_priced = all(arm.usd for arm in arms)
    costs = [arm.usd if is_priced and arm.usd else float(arm.verdicts) for arm in arms]
    rates = [arm.solved / cost for arm, cost in zip(arms, costs, strict=True)]
    prices = [cost / arm.verdicts for arm, cost in zip(arms, costs, strict=True)]
    best, total = max(rates) or 1.0, sum(arm.verdicts for arm in arms) / size
    curious = [CURIOSITY * math.sqrt(math.log(1 + total) * size / arm.verdicts) for arm in arms]
    bonuses = [bonus * min(prices) / price for bonus, price in zip(curious, prices, strict=True)]
    scores = [rate / best + bonus for rate, bonus in zip(rates, bonuses, strict=True)]
    return arms[scores.index(max(scores))].model


def add_slices(arms: Sequence[Proposer], slices: Sequence[Slice], ends: Ends) -> list[Proposer]:
    """What the slices of a round add to what the models did in earlier ones; their money apart."""
    return [_add_slices(arm, slices, ends) for arm in arms]


def _add_slices(arm: Proposer, slices: Sequence[Slice], ends: Ends) -> Proposer:
    own = [keys for keys in slices if keys and keys[0].model == arm.model]
    verdict_ends = (SampleEnd.RIGHT, SampleEnd.WRONG)
    verdicts = sum(ends.get(key.id) in verdict_ends for keys in own for key in keys)
    solved = sum(len({key.task for key in keys if ends.get(key.id) is SampleEnd.RIGHT}) for keys in own)
    return replace(arm, verdicts=arm.verdicts + verdicts, solved=arm.solved + solved)
