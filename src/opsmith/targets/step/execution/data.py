"""The data of a task: that of its problem, with the task's functions beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opsmith.problems.data import ProblemData, ShapeSet
from opsmith.problems.draws import Draw, Limits, TrialData, stack_rows
from opsmith.problems.faults import TaskFault
from opsmith.problems.narrowing import describe_narrowing
from opsmith.targets.step.execution.bound import BoundDraw, bind_fns
from opsmith.targets.step.execution.fns import Plans
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec


@dataclass
class StepDraw(Draw):
    """A draw with the task's functions on it."""

    standard: TaskData = field(repr=False)

    @cached_property
    def bound_declared(self) -> BoundDraw:
        return bind_fns(self.standard.spec, self.declared, self.standard.plans)

    @cached_property
    def bound_wide(self) -> BoundDraw:
        return bind_fns(self.standard.spec, self.wide, self.standard.plans)


class TaskData(ProblemData[StepDraw]):
    """All draws of a task. `plans` is what is known of its functions."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.plans: Plans = {}
        super().__init__(spec.problem)

    def make_draw(self, shape_set: str, overrides: Mapping[str, int], seed: int, is_case: bool = False) -> StepDraw:
        return StepDraw(self, shape_set, overrides, seed, is_case)

    def find_interface_fault(self, shape_set: ShapeSet[StepDraw]) -> TaskFault | None:
        """The finding on a fn that runs on random elements at the base shape, and not at these sizes."""
        faults = (self._find_fn_fault(shape_set, name) for name in self.spec.fn_table)
        return next(filter(None, faults), None)

    def _find_fn_fault(self, shape_set: ShapeSet[StepDraw], name: str) -> TaskFault | None:
        try:
            is_fine = self._first.bound_wide.fns[name].sample_fault is None
        except TaskFault:  # whoever uses it will be told
            return None
        return shape_set.draws[0].bound_wide.fns[name].sample_fault if is_fine else None

    def may_narrow(self) -> bool:
        """Whether the reference, or a fn that has been used, asks for less than float64."""
        return self.asks_narrow or any(plan.asks_narrow for plan in self.plans.values())


@dataclass
class StepTrialData(TrialData[StepDraw]):
    """What a trial hands to the simulator and to the comparison: `Trial.data` of this target."""

    @property
    def bound(self) -> list[BoundDraw]:
        """Per draw. Raises TaskFault."""
        return [draw.bound_wide if self.is_wide else draw.bound_declared for draw in self.draws]

    @property
    def is_base(self) -> bool:
        """Whether this is where a program is run first."""
        return self.is_wide and self.draws[0].shape_set == "base"

    @cached_property
    def stack(self) -> Stack:
        return Stack(self.bound)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Numbers of inputs, parameters and outputs together in one draw, and what a loop over all symbols visits."""
        problem, sizes = self.draws[0].problem, self.sizes
        return problem.count_numbers(sizes), problem.count_points(sizes)

    @cached_property
    def singles(self) -> list[StepTrialData]:
        """The draws one by one."""
        return [self] if len(self.draws) == 1 else [StepTrialData([draw], self.is_wide) for draw in self.draws]

    @cached_property
    def _narrowed_limits(self) -> Limits:
        return stack_rows([draw.narrowed_limits for draw in self.draws])

    def may_narrow(self) -> bool:
        """Whether code of the author that has run so far asks for less than float64 here."""
        return self.is_wide and self.draws[0].standard.may_narrow()

    def narrowing_fns(self, graph: Graph) -> Mapping[str, frozenset[int]]:
        """The fns of a program that compute with less than float64 here, each with the outputs that depend on it."""
        names = {node.fn.func_name for node in graph.nodes if node.fn is not None}
        return {name: graph.outputs_through(name) for name in sorted(names) if self.stack.find_fn(name).narrows}

    def limits_for(self, graph: Graph) -> Limits:
        """Those of a program's outputs: wider ones where they depend on a fn that narrows."""
        narrowed = frozenset[int]().union(*self.narrowing_fns(graph).values())
        return [self._narrowed_limits[number] if number in narrowed else row for number, row in enumerate(self.limits)]

    def describe_narrowing(self, graph: Graph) -> tuple[str, ...]:
        """What a person should know of how a program is judged where code narrows."""
        outputs = frozenset[int]().union(*(draw.narrowed_outputs for draw in self.draws))
        problem = self.draws[0].problem
        names = [f"the reference of {problem.outputs[number].name}" for number in sorted(outputs)]
        fns = [name for name, dependent in self.narrowing_fns(graph).items() if dependent]
        return tuple(map(describe_narrowing, [*names, *fns]))
