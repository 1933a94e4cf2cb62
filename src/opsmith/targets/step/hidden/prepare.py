"""One hidden trial: the data of a task at given sizes, where the task makes sense there and a trial costs little."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from opsmith.problems.bindings import Bindings
from opsmith.problems.dims import DimError
from opsmith.problems.drawing import draws_numbers
from opsmith.records import printable
from opsmith.targets.step.execution.bound import BoundDraw
from opsmith.targets.step.execution.bounds import count_streamed
from opsmith.targets.step.execution.data import StepDraw, StepTrialData
from opsmith.targets.step.execution.judge import judge_programs
from opsmith.targets.step.execution.run import RunError
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.hidden.bounded import WHOLE, Allowance, check_bounded
from opsmith.targets.step.hidden.many import is_divisible
from opsmith.targets.step.hidden.points import find_changing_sizes
from opsmith.targets.step.hidden.work import estimate_work, is_near
from opsmith.targets.step.language.check import Program, Report
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.trial import TaskFault, Trial

MAX_STREAMED = 2**26  # numbers that a program streams in all its hidden trials together
MAX_INPUTS = 2**22  # numbers of inputs, parameters and outputs together
SMALL = 2**14  # up to so many of them, SEEDS draws are tried, else one
SEEDS = 3
ATTEMPTS = 20  # draws before a margin is given up
MAX_APPLICATIONS = 4000  # of primitives, in all hidden trials of a program together ...
MAX_STEPS = 200_000  # of the interpreter, in all of them ...
MAX_LENGTH = 1000  # ... and of primitives in one that is beyond the task's own sizes
WITHIN = 1.1  # times the task's largest size: so far it is the program's fault to be too large

Sizes = Mapping[str, int]


class UnfitError(Exception):
    """There is no trial at these sizes: the task makes no sense there."""


class TooCostlyError(UnfitError):
    """There is no trial at these sizes: it would take too long. `str(error)` says why."""


class Preparation:
    """Makes the trials of one program. `seed` fixes their data."""

    def __init__(self, program: Program, seed: int) -> None:
        self.program, self.seed = program, seed
        self.spec = program.spec
        data = make_trials(self.spec).data
        self.data = copy.copy(data)  # how its functions run at odd sizes must not slow the task's own trials
        self.data.plans = {name: replace(plan) for name, plan in data.plans.items()}
        self.streamed, self.applications, self.steps = MAX_STREAMED, MAX_APPLICATIONS, MAX_STEPS  # what is left

    def make_trial(self, sizes: Sizes) -> Trial:
        """Raises UnfitError."""
        count = self._check_inputs(sizes)
        report = self._check_program(sizes)
        if report.graph is not None:
            self._check_streams(report.graph, sizes, count)
        if not is_near(sizes):
            self._check_work(sizes)
        case = self._make_case(sizes, SEEDS if count <= SMALL and not draws_numbers(self.spec.problem) else 1)
        try:
            _ = case.limits
        except (TaskFault, MemoryError) as error:
            raise UnfitError(str(error)) from None
        return Trial(f"{sizes_text(sizes)} float64", case, len(case.draws))

    def _complete_sizes(self, sizes: Sizes) -> dict[str, int]:
        return {**self.spec.problem.base_sizes, **sizes}

    def _make_case(self, sizes: Sizes, seeds: int) -> StepTrialData:
        name = f"hidden {self.seed} {sizes_text(sizes)}"
        return StepTrialData([_HiddenDraw(self.data, name, sizes, seed) for seed in range(seeds)], is_wide=True)

    def _is_within(self, sizes: Sizes) -> bool:
        """Whether the sizes are about those of the task's shape sets."""
        largest = find_changing_sizes(self.spec)
        return all(size <= WITHIN * largest[name] for name, size in sizes.items())

    def _check_inputs(self, sizes: Sizes) -> int:
        try:
            count = self.spec.problem.count_numbers(self._complete_sizes(sizes))
        except DimError as error:
            raise UnfitError(str(error)) from None
        if count > MAX_INPUTS:
            raise TooCostlyError(f"{count} numbers of inputs and outputs, more than {MAX_INPUTS}")
        return count

    def _check_program(self, sizes: Sizes) -> Report:
        """What the checker says of the program. One that only grows too long with the sizes is not refused for it."""
        if self.applications <= 0 or self.steps <= 0:
            raise TooCostlyError(f"{MAX_APPLICATIONS} applications or {MAX_STEPS} steps in smaller trials")
        is_within, all_sizes = self._is_within(sizes), self._complete_sizes(sizes)
        allowance = WHOLE if is_within else Allowance(self.steps, min(MAX_LENGTH, self.applications))
        extent = check_bounded(self.spec, self.program.source, all_sizes, allowance)
        self.applications -= extent.applications
        self.steps -= extent.steps
        own = self.program.report.graph
        if extent.report.graph is None and own is not None and not is_divisible(own, all_sizes):
            raise UnfitError("a dim of the program without a whole value")
        if extent.is_cut and not is_within:
            raise TooCostlyError(f"longer than {extent.applications} applications, {extent.steps} steps")
        if extent.report.graph is not None:
            self.program.remember_report(all_sizes, extent.report)
        return extent.report

    def _check_streams(self, graph: Graph, sizes: Sizes, count: int) -> None:
        """What is too large far beyond the task's own sizes is no fault, and not tried."""
        try:
            total = count_streamed(
                graph, self._make_stack(sizes), count, self.spec.problem.count_points(self._complete_sizes(sizes))
            )
        except RunError as error:
            if self._is_within(sizes):
                return
            raise TooCostlyError(error.diagnostic.given) from None
        if total > self.streamed:
            raise TooCostlyError(f"{total} elements streamed, more than {self.streamed}")
        self.streamed -= total

    def _make_stack(self, sizes: Sizes) -> Stack:
        """The functions of the base shape over the sizes of another; no data is made."""
        return Stack([replace(self._base, sizes=self._complete_sizes(sizes))])

    @cached_property
    def _base(self) -> BoundDraw:
        return self.data.sets[0].draws[0].bound_wide

    def _check_work(self, sizes: Sizes) -> None:
        try:
            work = estimate_work(self._run_trial, sizes)
        except (TaskFault, RunError, MemoryError) as error:
            raise UnfitError(str(error)) from None
        if not work.is_affordable():
            raise TooCostlyError(f"about {work.calls:.2g} calls of torch for {work.numbers:.2g} numbers")

    def _run_trial(self, sizes: Sizes) -> None:
        """All that a trial does."""
        case = self._make_case(sizes, 1)
        _ = case.limits
        graph = self.program.report_at(case.sizes).graph
        if graph is not None:
            judge_programs(self.spec, [graph], case)


class _HiddenDraw(StepDraw):
    """A draw that gives up early, and that findings call by its sizes."""

    attempts = ATTEMPTS

    def round_data(self, declared: Bindings) -> None:
        return None

    @property
    def label(self) -> str:
        return f"{sizes_text(self.overrides)} seed {self.seed}"


def sizes_text(sizes: Sizes) -> str:
    """`K = 65, M = 5`."""
    return printable(", ".join(f"{name} = {size}" for name, size in sizes.items()))
