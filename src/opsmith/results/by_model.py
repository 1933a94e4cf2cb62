"""What each model of a run was paid for and what came of it. Rules that count by model, each once.

A run of one model has one row; one of several has a row for each of its proposers, in the order given, then one for
each model that has a role and proposes nothing, and one for programs that were joined, which no model wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.records import Usage
from opsmith.results.intervals import Estimate, estimate_pass_at_k
from opsmith.store.proposers import ModelCount, RightSample, count_samples, list_right_samples, sum_bills
from opsmith.store.queries import Reader
from opsmith.store.rows import PLANNER, PROPOSER, RunInfo

_ROLES = {"guardian": "guardian_model", "analyst": "analyst", "planner": "planner"}  # the setting that names each


@dataclass(frozen=True)
class ModelFigures:
    """One model of a run. Samples are those of functional rounds; the bill is of all that was asked of it."""

    model: str  # as the user named it; `join`: no model
    roles: tuple[str, ...]  # proposer, guardian, analyst, planner; (): what it says of itself
    usage: Usage
    samples: int  # that it answered as a proposer
    verdicts: int  # samples that were judged
    right: int
    solved: int  # tasks of the run that a sample of its is right for
    first: int  # ... and that were solved by it before any other model: `find_solvers`
    rate: Estimate | None  # pass@1 over the tasks that it was tried at; None: nothing of its was judged


def read_by_model(reader: Reader, run: str) -> tuple[ModelFigures, ...]:
    """The figures of a run's models; all usage in them is the run's, to the request."""
    info = reader.read_info(run)
    assert info is not None
    counts, bills = count_samples(reader, run), sum_bills(reader, run)
    tasks = frozenset(task.id for task in reader.read_tasks(run))
    return make_figures(info, tasks, counts, list_right_samples(reader, run), bills)


def make_figures(
    info: RunInfo,
    tasks: frozenset[str],
    counts: Sequence[ModelCount],
    right: Sequence[RightSample],
    bills: Mapping[tuple[str, str], Usage],
) -> tuple[ModelFigures, ...]:
    """`tasks`: those of the run itself, without what it split them into."""
    paid = share_bills(info, bills)
    proposers = name_proposers(info)
    tried = [count.model or proposers[0] for count in counts]
    named = [str(info.settings[role]) for role in _ROLES.values() if info.settings.get(role) not in (None, "", "none")]
    names = dict.fromkeys([*proposers, *named, *paid, *tried])
    own = [sample for sample in right if sample.task in tasks]
    solvers = find_solvers(own, proposers)
    return tuple(
        _make_row(name, info, [count for count in counts if (count.model or proposers[0]) == name], own, solvers, paid)
        for name in names
    )


def _make_row(
    name: str,
    info: RunInfo,
    counts: Sequence[ModelCount],
    right: Sequence[RightSample],
    solvers: Mapping[str, str],
    paid: Mapping[str, Usage],
) -> ModelFigures:
    own = name_proposers(info)[0]
    pairs = [(count.verdicts, count.right) for count in counts if count.verdicts]
    return ModelFigures(
        model=name,
        roles=(
            *([PROPOSER] if name in name_proposers(info) else []),
            *(role for role, setting in _ROLES.items() if info.settings.get(setting) == name),
        ),
        usage=paid.get(name, Usage()),
        samples=sum(count.answered for count in counts),
        verdicts=sum(samples for samples, _ in pairs),
        right=sum(passed for _, passed in pairs),
        solved=len({sample.task for sample in right if (sample.model or own) == name}),
        first=sum((solver or own) == name for solver in solvers.values()),
        rate=estimate_pass_at_k(pairs, 1),
    )


def find_solvers(right: Iterable[RightSample], proposers: Sequence[str]) -> dict[str, str]:
    """By task, the model that solved it first: in the first round with a right sample the one that needed the fewest
    attempts there; of equals the lower temperature, then the model that was named first.

    >>> a, b = RightSample("a", "t", 0, 3, 0.4), RightSample("b", "t", 0, 2, 1.0)
    >>> find_solvers([a, b], ["a", "b"])
    {'t': 'b'}
    """
    order = {name: place for place, name in enumerate(proposers)}

    def rank(sample: RightSample) -> tuple[Any, ...]:
        place = order.get(sample.model, len(order))
        return sample.round, sample.number, sample.temperature, place, sample.model

    solvers: dict[str, str] = {}
    for sample in sorted(right, key=rank):
        solvers.setdefault(sample.task, sample.model)
    return dict(sorted(solvers.items()))


def share_bills(info: RunInfo, bills: Mapping[tuple[str, str], Usage]) -> dict[str, Usage]:
    """By model, what was paid for it, from sums by (model, agent). Requests that name no model were asked of the run's
    own, or of an analyst beside it, where that is another one."""
    paid: dict[str, Usage] = {}
    analyst, own = info.settings.get("analyst"), name_proposers(info)[0]
    for (model, agent), usage in bills.items():
        unnamed = analyst if agent.partition("-")[0] == "analyst" and analyst is not None else own
        name = own if model == PLANNER else model or unnamed  # a planner without a model of its own
        paid[name] = paid.get(name, Usage()) + usage
    return paid


def name_proposers(info: RunInfo) -> tuple[str, ...]:
    """The proposers of a run, the run's own first; one where it has no others."""
    return tuple(info.settings.get("models") or (info.model,))
