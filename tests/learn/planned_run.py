"""A run with plans over the tiny language: tasks, settings and judge for the tests of planning."""

from __future__ import annotations

from planned_target import PlanningJudge, planned_task, register_planned
from tiny_run import SETTINGS, TinyModel

from opsmith.learn.events import Event
from opsmith.learn.loop import improve
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store

register_planned()

TASKS = [
    planned_task("sum_0", "x y +"),
    planned_task(
        "hard",
        "x y + z * u - v max x *",
        [
            {"a": "x y + z * u - v max", "b": "a x *"},  # a is as hard as the whole
            {"a": "x y +", "b": "a z *", "c": "b u -", "d": "c v max", "e": "d x *"},
        ],
        contracts={"a": {"instead": {"a": "x y +", "b": "a z * u - v max x *"}}},
    ),
    planned_task(
        "deep",
        "x y * z w * + u max",
        [{"m": "x y * z w * +", "out": "m u max"}],
        contracts={"m": {"splits": [{"p": "x y *", "q": "z w *", "m": "p q +"}]}},
    ),
]
PLANNED = SETTINGS.replace(plan="static", plan_after=1, samples=24)


def run_planned(
    store: Store, settings: Settings = PLANNED, model: TinyModel | None = None
) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []
    result = improve(TASKS, model or TinyModel(), settings, store, judge=PlanningJudge(), on_event=events.append)
    return result, events
