"""Cycles of a program at its task's own sizes, as a simulator counts them or a cost model says: the same every time.

They need no pairs, no interval and no lease. They are figures of the simulated machine: nothing is claimed of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport, TimeUnit
from opsmith.records import Candidate, Task, Verdict
from opsmith.targets import get_target
from opsmith.targets.protocols import Portable, Stating

CYCLES_PROTOCOL = "cycles/1"  # raise it whenever figures of two versions cannot be compared
BASE = "base"  # the task's own sizes
_EMULATED = "emulated"

CountCycles = Callable[[Task, str], Mapping[str, Any]]  # a program's figures, `cycles` among them
Verify = Callable[[Task, str], Verdict]


@dataclass(frozen=True)
class CycleRequest:
    """Whose cycles are counted, and beside whose. `partner` None: the program's alone."""

    task: Task
    source: str
    partner: tuple[str, str] | None  # its name and source
    grade: MeasuringGrade

    def plan_measurement(self) -> SpeedMeasurement:
        """The measurement before anything was counted."""
        target = get_target(self.task.target)
        return SpeedMeasurement(
            program=Candidate(self.source).id,
            problem=target.problem_digest(self.task) if isinstance(target, Portable) else self.task.digest,
            shape_set=BASE,
            sizes=dict(target.find_problem(self.task).base_sizes) if isinstance(target, Stating) else {},
            device=f"{_EMULATED}:{target.verifier}",
            protocol=CYCLES_PROTOCOL,
            flags="",
            grade=self.grade,
            unit=TimeUnit.CYCLES,
            time=None,
            reason="not counted yet",
            sought_partner="" if self.partner is None else self.partner[0],
        )


def measure_cycles(verify: Verify, count: CountCycles, request: CycleRequest) -> SpeedReport:
    """What is counted of a right program, and of its partner where it has one."""
    planned = request.plan_measurement()
    cycles, reason = _count_right(verify, count, request.task, request.source)
    if cycles is None:
        return SpeedReport(replace(planned, reason=f"the program {reason}"), None)
    if request.partner is None:
        return SpeedReport(replace(planned, time=cycles, reason=""), None)
    name, source = request.partner
    partner, reason = _count_right(verify, count, request.task, source)
    if partner is None:
        return SpeedReport(replace(planned, time=cycles, reason=f"the partner {name} {reason}"), None)
    ratio = SpeedRatio(name, _as_point(partner.value / cycles.value))
    return SpeedReport(replace(planned, time=cycles, reason="", sought_partner="", ratio=ratio), None)


def _count_right(verify: Verify, count: CountCycles, task: Task, source: str) -> tuple[Interval | None, str]:
    """The cycles of a right program, or None and why there are none."""
    try:
        verdict = verify(task, source)
        if not verdict.passed:
            return None, f"is not right: {verdict.message.splitlines()[0] if verdict.message else verdict.stage.name}"
        cycles = count(task, source).get("cycles")
    except OpsmithError as error:
        return None, f"was not counted: {error}"
    return (_as_point(float(cycles)), "") if cycles else (None, "has cycles that cannot be said")


def _as_point(figure: float) -> Interval:
    return Interval(figure, figure, figure)
