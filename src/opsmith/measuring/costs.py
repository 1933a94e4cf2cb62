"""Costs of a program as a simulator counts them, or as a cost model says at its task's own sizes: the same every time.

They need no pairs, no interval and no lease. They are figures of the simulated machine: nothing is claimed of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from opsmith.errors import OpsmithError, UsageError, VerifierError
from opsmith.judging.commanded import start_commands
from opsmith.judging.executed import build_checked
from opsmith.judging.execution import NotRunError
from opsmith.judging.limits import Limits
from opsmith.measuring.intervals import Interval
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.records import CYCLES, Candidate, Diagnostic, Objective, Task, Verdict
from opsmith.targets import Built, Commanded, get_target
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.protocols import Portable, Stating, Versioned

BASE = "base"  # the task's own sizes
_EMULATED = "emulated"
_COUNT_S = 600.0  # for one run: a simulator is slow at the sizes that a bench has

CountCosts = Callable[[Task, str], Mapping[str, Any]]  # a program's figures by name, those of `objectives` among them
CountAt = Callable[[Task, str, Mapping[str, int]], Mapping[str, Any]]  # the same at given sizes
Verify = Callable[[Task, str], Verdict]


@dataclass(frozen=True)
class CostRequest:
    """Whose costs are counted, and beside whose. `partner` None: the program's alone."""

    task: Task
    source: str
    partner: tuple[str, str] | None  # its name and source
    grade: MeasuringGrade
    objectives: tuple[Objective, ...] = (CYCLES,)
    shape_sets: tuple[str, ...] = (BASE,)  # of `list_counted_sets`

    def plan_measurements(self) -> list[SpeedMeasurement]:
        """A measurement for each objective at each shape set, before anything was counted."""
        target = get_target(self.task.target)
        sizes = list_counted_sets(self.task)
        planned = SpeedMeasurement(
            program=Candidate(self.source).id,
            problem=target.problem_digest(self.task) if isinstance(target, Portable) else self.task.digest,
            shape_set=BASE,
            sizes={},
            device=f"{_EMULATED}:{target.verifier}",
            protocol="",
            flags=target.describe_toolchain() if isinstance(target, Versioned) else "",
            grade=self.grade,
            objective=CYCLES,
            time=None,
            reason="not counted yet",
            sought_partner="" if self.partner is None else self.partner[0],
        )
        return [
            replace(planned, shape_set=name, sizes=sizes[name], objective=objective, protocol=_name_protocol(objective))
            for name in self.shape_sets
            for objective in self.objectives
        ]


def list_counted_sets(task: Task) -> dict[str, dict[str, int]]:
    """The sizes at which costs can be counted, by shape set: the task's own ones; where commands run programs, those
    of its bench, and its further ones."""
    target = get_target(task.target)
    if not isinstance(target, Stating):
        return {BASE: {}}
    problem = target.find_problem(task)
    sets = {**choose_shape_sets(problem), **problem.bench} if isinstance(target, Commanded) else {}
    return {name: problem.select_sizes({**problem.base_sizes, **sizes}) for name, sizes in {BASE: {}, **sets}.items()}


def choose_counted_sets(task: Task, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The named ones; none named: the task's own sizes, and those of its bench. Raises UsageError."""
    known = list_counted_sets(task)
    for name in names:
        if name not in known and len(known) == 1:
            raise UsageError(f"--shapes {name}: cycles of task {task.id} are counted at its own sizes only: {BASE}")
        if name not in known:
            raise UsageError(f"shape set {name!r}: task {task.id} has none of that name; known: {', '.join(known)}")
    target = get_target(task.target)
    bench = target.find_problem(task).bench if isinstance(target, Stating) and len(known) > 1 else {}
    return tuple(names) or (BASE, *bench)


def count_at_sizes(room: TimingRoom, task: Task, source: str, sizes: Mapping[str, int]) -> Mapping[str, Any]:
    """The cycles of one run at these sizes, on the same numbers every time; its outputs are right. Raises OpsmithError
    for a program that is not, or that cannot be run there."""
    target = get_target(task.target)
    if not isinstance(target, Commanded) or not isinstance(target, Built):
        raise UsageError(f"target {task.target}: its costs are counted at its tasks' own sizes only")
    build = build_checked(target, task, source)
    if not build.artefacts:
        raise VerifierError(build.failure or str(build.errors[0]))
    where = " ".join(f"{name}={size}" for name, size in sizes.items())
    with room.asking_worker(task, task.target) as worker:
        inputs = worker.draw_inputs(sizes)
        try:
            outputs = start_commands(target, task, build, Limits(_COUNT_S, _COUNT_S)).run_first(where, inputs)
        except NotRunError as error:
            raise VerifierError(str(error)) from error
        if isinstance(outputs, Diagnostic):
            raise VerifierError(str(outputs))
        layout, (arrays,) = read_inputs(memoryview(inputs))
        worker.check_arrays(sizes, layout.draws[0], [bytes(array) for array in arrays], [outputs.data])
    return {"cycles": outputs.cycles}


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


def measure_costs(
    verify: Verify, count: CountCosts, request: CostRequest, count_at: CountAt | None = None
) -> Iterator[SpeedReport]:
    """A report for each objective at each shape set: what is counted of a right program, and of its partner where it
    has one. count_at: needed for other shape sets than `base`."""
    name, source = request.partner or ("", "")
    wrong = {side: _find_wrong(verify, request.task, side) for side in dict.fromkeys((request.source, source)) if side}
    sizes = list_counted_sets(request.task)
    for shape_set in request.shape_sets:
        count_here = count
        if shape_set != BASE:
            assert count_at is not None
            count_here = partial(_count_there, count_at, sizes[shape_set])
        program = wrong[request.source] or _count_right(count_here, request.task, request.source)
        beside = _Counted({})
        if name and not program.reason:
            beside = wrong[source] or _count_right(count_here, request.task, source)
        for planned in replace(request, shape_sets=(shape_set,)).plan_measurements():
            yield SpeedReport(_compare_costs(planned, program, (name, beside)), None)


def _count_there(count_at: CountAt, sizes: Mapping[str, int], task: Task, source: str) -> Mapping[str, Any]:
    return count_at(task, source, sizes)


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


def _find_wrong(verify: Verify, task: Task, source: str) -> _Counted | None:
    """Why nothing is counted of a program; None: it is right."""
    try:
        verdict = verify(task, source)
    except OpsmithError as error:
        return _Counted({}, f"was not counted: {error}")
    return None if verdict.passed else _Counted({}, f"is not right: {verdict.message or verdict.stage.name}")


def _count_right(count: CountCosts, task: Task, source: str) -> _Counted:
    """The costs of a right program, or why there are none."""
    try:
        return _Counted(count(task, source))
    except OpsmithError as error:
        return _Counted({}, f"was not counted: {error}")


def _name_protocol(objective: Objective) -> str:
    """Raise a number whenever figures of two versions cannot be compared."""
    return "cycles/1" if objective == CYCLES else f"cost/{objective.name}/1"


def _as_point(figure: float) -> Interval:
    return Interval(figure, figure, figure)
