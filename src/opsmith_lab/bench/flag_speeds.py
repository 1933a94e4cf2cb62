"""How fast a problem's own program is when it is built with other flags: what a compiler alone can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.devices.describe import describe_device
from opsmith.measuring.intervals import Interval
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, Verify, choose_timed_sets, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade
from opsmith.records import Task
from opsmith.targets import get_target
from opsmith.targets.protocols import Configured

FLAG_SETS = ("-O2", "-O3 -funroll-loops", "-O3 -ffast-math", "-Ofast -funroll-loops")


@dataclass(frozen=True)
class FlagSpeed:
    """The program built with these flags, beside itself as the task builds it."""

    flags: str
    ratio: Interval | None  # above 1: faster with these flags
    reason: str = ""  # why there is no ratio, such as a wrong result


def measure_flags(room: TimingRoom, verify: Verify, task: Task, shape: str) -> list[FlagSpeed]:
    """The sets in their order, by a screen each; none for a task without a program, or whose language has no flags."""
    target = get_target(task.target)
    if task.impl is None or not isinstance(target, Configured):
        return []
    return [
        _measure_set(room, verify, task, target.configure_task(task, {"flags": flags}), flags, shape)
        for flags in FLAG_SETS
    ]


def _measure_set(room: TimingRoom, verify: Verify, task: Task, configured: Task, flags: str, shape: str) -> FlagSpeed:
    assert task.impl is not None
    sides = TimedProgram(task.impl, "program", configured), TimedProgram(task.impl, PLAIN)
    shape_sets = choose_timed_sets(task, [shape])
    request = SpeedRequest(task, *sides, shape_sets, MeasuringGrade.SCREEN, describe_device(), None)
    (report,) = measure_program(room, verify, request)
    ratio = report.measurement.ratio
    return FlagSpeed(flags, ratio.precise if ratio is not None else None, report.measurement.reason)


def choose_best_flags(speeds: Sequence[FlagSpeed]) -> FlagSpeed | None:
    """The fastest set that is shown to be faster than the flags of the task; None: those are the best."""
    faster = [each for each in speeds if each.ratio is not None and each.ratio.low > 1]
    return max(faster, key=lambda each: each.ratio.value if each.ratio is not None else 0.0, default=None)
