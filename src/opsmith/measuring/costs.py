"""Costs of a program at its task's own sizes, as a simulator counts them or a cost model says: the same every time.

They need no pairs, no interval and no lease. They are figures of the simulated machine: nothing is claimed of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.records import CYCLES, Candidate, Objective, Task, Verdict
from opsmith.targets import get_target
from opsmith.targets.protocols import Portable, Stating

BASE = "base"  # the task's own sizes
_EMULATED = "emulated"

CountCosts = Callable[[Task, str], Mapping[str, Any]]  # a program's figures by name, those of `objectives` among them
Verify = Callable[[Task, str], Verdict]


@dataclass(frozen=True)
class CostRequest:
    """Whose costs are counted, and beside whose. `partner` None: the program's alone."""

    task: Task
    source: str
    partner: tuple[str, str] | None  # its name and source
    grade: MeasuringGrade
    objectives: tuple[Objective, ...] = (CYCLES,)

    def plan_measurements(self) -> list[SpeedMeasurement]:
        """A measurement for each objective, before anything was counted."""
        target = get_target(self.task.target)
        problem = target.find_problem(self.task) if isinstance(target, Stating) else None
        planned = SpeedMeasurement(
            program=Candidate(self.source).id,
            problem=target.problem_digest(self.task) if isinstance(target, Portable) else self.task.digest,
            shape_set=BASE,
            sizes={} if problem is None else problem.select_sizes(problem.base_sizes),
            device=f"{_EMULATED}:{target.verifier}",
            protocol="",
            flags="",
            grade=self.grade,
            objective=CYCLES,
            time=None,
            reason="not counted yet",
            sought_partner="" if self.partner is None else self.partner[0],
        )
        return [
            replace(planned, objective=objective, protocol=_name_protocol(objective)) for objective in self.objectives
        ]


@dataclass(frozen=True)
class _Counted:
    """What was counted of one side, or why nothing was."""

    costs: Mapping[str, Any]
    reason: str = ""

    def read_cost(self, objective: Objective) -> tuple[Interval | None, str]:
        """The figure, or why there is none."""
        cost = self.costs.get(objective.name)
        if self.reason or not cost:
            return None, self.reason or f"has {objective.name} that cannot be said"
        return _as_point(float(cost)), ""


def measure_costs(verify: Verify, count: CountCosts, request: CostRequest) -> Iterator[SpeedReport]:
    """A report for each objective: what is counted of a right program, and of its partner where it has one."""
    program = _count_right(verify, count, request.task, request.source)
    name, source = request.partner or ("", "")
    partner = _count_right(verify, count, request.task, source) if name and not program.reason else _Counted({})
    for planned in request.plan_measurements():
        yield SpeedReport(_compare_costs(planned, program, (name, partner)), None)


def _compare_costs(planned: SpeedMeasurement, program: _Counted, against: tuple[str, _Counted]) -> SpeedMeasurement:
    cost, reason = program.read_cost(planned.objective)
    if cost is None:
        return replace(planned, reason=f"the program {reason}")
    name, partner = against
    if not name:
        return replace(planned, time=cost, reason="")
    partner_cost, reason = partner.read_cost(planned.objective)
    if partner_cost is None:
        return replace(planned, time=cost, reason=f"the partner {name} {reason}")
    ratio = SpeedRatio(name, _as_point(planned.objective.compare(cost.value, partner_cost.value)))
    return replace(planned, time=cost, reason="", sought_partner="", ratio=ratio)


def _count_right(verify: Verify, count: CountCosts, task: Task, source: str) -> _Counted:
    """The costs of a right program, or why there are none."""
    try:
        verdict = verify(task, source)
        if not verdict.passed:
            return _Counted({}, f"is not right: {verdict.message or verdict.stage.name}")
        return _Counted(count(task, source))
    except OpsmithError as error:
        return _Counted({}, f"was not counted: {error}")


def _name_protocol(objective: Objective) -> str:
    """Raise a number whenever figures of two versions cannot be compared."""
    return "cycles/1" if objective == CYCLES else f"cost/{objective.name}/1"


def _as_point(figure: float) -> Interval:
    return Interval(figure, figure, figure)
