"""The fronts of one run for its pages: what is stored of its right programs by several figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opsmith.measuring.objectives import order_objectives
from opsmith.records import Task
from opsmith.report.fronts import list_totals, tabulate_fronts
from opsmith.report.record import DataTable
from opsmith.results.fronts import TaskFront, read_fronts
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.suites import find_bundled

_find_bundled = lru_cache(maxsize=256)(find_bundled)


@dataclass(frozen=True)
class FrontView:
    """The fronts of a run's tasks."""

    fronts: tuple[TaskFront, ...]
    table: DataTable
    totals: tuple[str, ...]


def view_fronts(store: Store, run: str, speeds: Sequence[StoredSpeed]) -> FrontView | None:
    """None where fewer than two figures are stored of its programs: there is nothing to weigh. `speeds`: the run's."""
    objectives = order_objectives(speed.report.measurement for speed in speeds)
    if len(objectives) < 2:
        return None
    tasks = sorted((_add_own(task) for task in store.read_tasks(run)), key=lambda task: task.id)
    fronts = tuple(read_fronts(store, [run], tasks, objectives))
    return FrontView(fronts, tabulate_fronts(fronts), tuple(list_totals(fronts)))


def _add_own(task: Task) -> Task:
    """A stored task has no program; a bundled one's file does."""
    bundled = _find_bundled(task)
    return task if bundled is None else replace(task, impl=bundled.impl)
