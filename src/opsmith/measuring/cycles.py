"""Cycles of a program at its task's own sizes, as a simulator counts them or a cost model says: the same every time.

They need no pairs, no interval and no lease. They are figures of the simulated machine: nothing is claimed of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, TimeUnit
from opsmith.records import Candidate, Task
from opsmith.targets import get_target
from opsmith.targets.protocols import Portable, Stating

CYCLES_PROTOCOL = "cycles/1"  # raise it whenever figures of two versions cannot be compared
BASE = "base"  # the task's own sizes
_EMULATED = "emulated"

CountCycles = Callable[[Task, str], Mapping[str, Any]]  # a program's figures, `cycles` among them


def plan_cycles(task: Task, source: str, partner: str, grade: MeasuringGrade) -> SpeedMeasurement:
    """The measurement before anything was counted; `partner` "": none."""
    target = get_target(task.target)
    return SpeedMeasurement(
        program=Candidate(source).id,
        problem=target.problem_digest(task) if isinstance(target, Portable) else task.digest,
        shape_set=BASE,
        sizes=dict(target.find_problem(task).base_sizes) if isinstance(target, Stating) else {},
        device=f"{_EMULATED}:{target.name}",
        protocol=CYCLES_PROTOCOL,
        flags="",
        grade=grade,
        unit=TimeUnit.CYCLES,
        time=None,
        reason="not counted yet",
        sought_partner=partner,
    )


def fill_cycles(
    planned: SpeedMeasurement, task: Task, source: str, partner_source: str | None, count: CountCycles
) -> SpeedMeasurement:
    """The measurement with what is counted of the program, and of its partner where it has one."""
    cycles, reason = _count_once(task, source, count)
    if cycles is None:
        return replace(planned, reason=reason)
    measured = replace(planned, time=cycles)
    if partner_source is None:
        return replace(measured, reason="", sought_partner="")
    partner, reason = _count_once(task, partner_source, count)
    if partner is None:
        return replace(measured, reason=f"the partner {planned.sought_partner}: {reason}")
    ratio = SpeedRatio(planned.sought_partner, _as_point(partner.value / cycles.value))
    return replace(measured, reason="", sought_partner="", ratio=ratio)


def _count_once(task: Task, source: str, count: CountCycles) -> tuple[Interval | None, str]:
    """The cycles, or None and why there are none."""
    try:
        cycles = count(task, source).get("cycles")
    except OpsmithError as error:
        return None, str(error)
    if not cycles:
        return None, "its cycles cannot be said"
    return _as_point(float(cycles)), ""


def _as_point(figure: float) -> Interval:
    return Interval(figure, figure, figure)
