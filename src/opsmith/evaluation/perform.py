"""How are the runs of an experiment made? One after the other on one store; a run that is there already is found.

The cap on costs is shared: what the experiment's earlier runs cost counts, whenever they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.api import improve
from opsmith.errors import UsageError
from opsmith.evaluation.experiment import BY_ARM
from opsmith.evaluation.plan import Planned
from opsmith.learn.events import OnEvent
from opsmith.learn.result import RunResult
from opsmith.models.table import get_model
from opsmith.records import Task
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import get_target


@dataclass(frozen=True)
class Done:
    """A run of the experiment, as far as it has come."""

    planned: Planned
    result: RunResult


@dataclass(frozen=True)
class Performed:
    done: tuple[Done, ...]
    stopped: str  # why the rest was not done; "": all runs are finished


def perform(
    planned: Sequence[Planned],
    tasks: Sequence[Task],
    store: Store,
    max_cost: float | None = None,
    on_event: OnEvent | None = None,
) -> Performed:
    """Every run that is not there yet, until one stops. The same call goes on from there."""
    _every_model_is_there(planned, tasks)
    done: list[Done] = []
    spent: dict[str, float] = {}
    for item in planned:
        left = None if max_cost is None else max_cost - sum(spent.values())
        if left is not None and left <= 0:
            return Performed(tuple(done), "max cost")
        settings = _resolved(item, done).model_copy(update={"max_cost": left})
        result = improve(list(tasks), settings.model, settings, store, on_event=on_event)
        spent[result.run] = result.usage.cost_usd or 0.0
        done.append(Done(item, result))
        if not result.finished:
            return Performed(tuple(done), result.end)
    return Performed(tuple(done), "")


def _every_model_is_there(planned: Sequence[Planned], tasks: Sequence[Task]) -> None:
    """A key that is missing for the last model is said before the first one is asked."""
    if not tasks:
        raise UsageError("tasks: given none; expected at least one")
    for settings in {item.settings.model: item.settings for item in planned}.values():
        get_model(settings, get_target(tasks[0].target))


def _resolved(item: Planned, done: Sequence[Done]) -> Settings:
    """The settings with runs in place of the arms that they name."""
    runs = {
        other.planned.arm.name: other.result.run
        for other in done
        if (other.planned.series, other.planned.settings.seed) == (item.series, item.settings.seed)
    }
    named = {name: getattr(item.settings, name) for name in BY_ARM}
    return item.settings.model_copy(update={name: runs[arm] for name, arm in named.items() if arm is not None})
