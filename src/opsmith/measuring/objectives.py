"""Objectives: by which figures a right program is better than another one, and which of them a target can say.

A run's objective is the name of one figure, or `front`: all that the target says, no one above another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opsmith.errors import UsageError
from opsmith.measuring.record import SpeedMeasurement
from opsmith.records import CYCLES, OFF_CHIP_BYTES, ON_CHIP_BYTES, TIME, Objective, Task
from opsmith.running.turnstile import CPU
from opsmith.targets import Commanded, get_target
from opsmith.targets.protocols import Carried, Counting, Stating, Timed, Weighed

FRONT = "front"
_ORDER = (TIME, CYCLES, ON_CHIP_BYTES, OFF_CHIP_BYTES)


def list_objectives(task: Task) -> tuple[Objective, ...]:
    """What can be said of right programs of the task's target, the usual one first: a time, or costs."""
    target = get_target(task.target)
    times = (TIME,) if isinstance(target, Timed) and isinstance(target, Stating) else ()
    is_counted = isinstance(target, Commanded) and not (isinstance(target, Counting) and not target.counts_cycles)
    costs = target.objectives if isinstance(target, Weighed) else (CYCLES,) if is_counted else ()
    return (*times, *costs)


def list_figures(task: Task) -> tuple[str, ...]:
    """Their names."""
    return tuple(objective.name for objective in list_objectives(task))


def choose_figures(task: Task, objective: str) -> tuple[str, ...]:
    """The figures that an objective asks for. Raises UsageError for one that the task's target cannot say."""
    figures = list_figures(task)
    if objective == FRONT and figures:
        return figures
    return require_figures(task, (objective,))


def require_figures(task: Task, names: Sequence[str]) -> tuple[str, ...]:
    """These figures. Raises UsageError for one that the task's target cannot say."""
    figures = list_figures(task)
    for name in names:
        if name not in figures:
            choices = ", ".join(figures) or "nothing"
            raise UsageError(
                f"objective {name!r}: programs of target {task.target} have no such figure; they have: {choices}"
            )
    return tuple(names)


def order_objectives(measurements: Iterable[SpeedMeasurement]) -> list[Objective]:
    """Of what these are, each once: a time and what several languages count first, a target's own by name."""
    measured = {measurement.objective for measurement in measurements}
    return [*(known for known in _ORDER if known in measured), *sorted(measured - {*_ORDER}, key=lambda own: own.name)]


def is_timed(task: Task) -> bool:
    """Whether programs of the task's target are timed on a device."""
    return TIME in list_objectives(task)


def is_carried_only(task: Task) -> bool:
    """Whether programs of the task's target are timed by the stand-alone runner alone, on a device that it drives."""
    target = get_target(task.target)
    return isinstance(target, Carried) and isinstance(target, Stating) and not isinstance(target, Timed)


def choose_device_kind(task: Task) -> str:
    """Of which kind a device is that programs of the task are measured on: cpu, or what the runner calls them on."""
    target = get_target(task.target)
    return target.convention.device if isinstance(target, Carried) and is_carried_only(task) else CPU
