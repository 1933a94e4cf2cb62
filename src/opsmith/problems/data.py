"""All data of a problem: its shape sets with their draws, and the trials that they make.

A problem runs at several shape sets, each with several seeds in float64, where it is judged tightly, and once in the
declared precision, where it is judged against the reference's own rounding error. All draws of a set and a precision
are one trial. Everything is prepared on first use and kept, so that a program that is wrong at the base shape costs one
trial. A set of ours at which the author's own code fails is left out, whatever the program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

from opsmith.problems.decisions import is_discrete
from opsmith.problems.drawing import draws_numbers
from opsmith.problems.draws import DrawT, name_precision
from opsmith.problems.faults import TaskFault, is_lack_of_memory, make_fault
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import choose_shape_sets

SEEDS, BASE_SEEDS = 3, 5  # per shape set, in float64


@dataclass(eq=False)
class ShapeSet(Generic[DrawT]):
    """One set of sizes of a problem and its draws."""

    data: ProblemData[DrawT] = field(repr=False)
    name: str
    overrides: Mapping[str, int]

    @cached_property
    def draws(self) -> list[DrawT]:
        seeds = range(BASE_SEEDS if self.name == "base" else SEEDS)
        return [self.data.make_draw(self.name, self.overrides, seed) for seed in seeds]

    @cached_property
    def cases(self) -> list[DrawT]:
        """The hand-made inputs at these sizes."""
        shape = "" if self.name == "base" else self.name
        numbers = [number for number, case in enumerate(self.data.problem.cases) if case.shape == shape]
        return [self.data.make_draw("case", self.overrides, number, is_case=True) for number in numbers]

    @property
    def is_stated(self) -> bool:
        """Whether these are sizes of the author's."""
        return self.name == "base" or self.name in self.data.problem.shapes

    @cached_property
    def fault(self) -> TaskFault | None:
        """Why the author's code cannot be tried at a set of ours. None: it can, or the author stated these sizes.

        All that a trial needs beside a program is made here. Raises TaskFault for lack of memory, which
        says nothing of the sizes.
        """
        if self.is_stated:
            return None
        fault = self._find_reference_fault() or self.data.find_interface_fault(self)
        if fault is not None and is_lack_of_memory(fault.__cause__):
            raise fault
        return fault

    def _find_reference_fault(self) -> TaskFault | None:
        try:
            for draw in self.draws:
                _ = draw.wide_limits
            _ = self.data.problem.has_narrow_floats and self.draws[0].declared_limits
        except TaskFault as fault:
            return fault
        return None

    def explain_left_out(self) -> str:
        """Why nothing is tried here, in one line; "": it is. Raises TaskFault when too little is left to try."""
        if self.fault is None:
            return ""
        self.data.refuse_few(self)
        finding = self.fault.diagnostic
        sizes = ", ".join(f"{name} = {size}" for name, size in self.overrides.items())
        return f"shape set {self.name} ({sizes}) is left out: {finding.where}: {finding.given}"


@dataclass(frozen=True)
class PlannedTrial(Generic[DrawT]):
    """Draws of a shape set that are executed at once in one precision."""

    name: str
    shape_set: ShapeSet[DrawT]
    draws: Sequence[DrawT]
    is_wide: bool


class ProblemData(ABC, Generic[DrawT]):
    """All draws of one problem, by shape set, base first and large last.

    A target says what a draw is, and may find faults of its own interface at a shape set.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        chosen = choose_shape_sets(problem)
        self.sets: list[ShapeSet[DrawT]] = [ShapeSet(self, name, overrides) for name, overrides in chosen.items()]

    @abstractmethod
    def make_draw(self, shape_set: str, overrides: Mapping[str, int], seed: int, is_case: bool = False) -> DrawT:
        """One draw; of hand-made inputs `seed` is the case's place in the file."""

    def find_interface_fault(self, shape_set: ShapeSet[DrawT]) -> TaskFault | None:
        """What a target adds that the author's code cannot do at these sizes."""
        return None

    @cached_property
    def exact(self) -> list[list[bool]]:
        """Per output and tensor: whether values are compared exactly.

        Multihots, integers and bools are, and floats that stand for a decision: those whose expected values at the base
        shape are all 0 or 1, and both occur. Other shapes do not count: where a size is 1, a quotient may be 1 as well.
        """
        values = self._first.values
        return [
            [is_discrete(type_, value) for type_, value in zip(output.types, row, strict=True)]
            for output, row in zip(self.problem.outputs, values, strict=True)
        ]

    @cached_property
    def asks_narrow(self) -> bool:
        """Whether the reference asks for less than float64 at the base shape."""
        return self._first.raised_values[1]

    @property
    def _first(self) -> DrawT:
        return self.sets[0].draws[0]

    def refuse_few(self, last: ShapeSet[DrawT]) -> None:
        """Raises TaskFault when, up to `last`, more than half of all sets are left out."""
        reached = self.sets[: self.sets.index(last) + 1]
        missing = [shape_set.name for shape_set in reached if shape_set.fault is not None]
        if 2 * len(missing) > len(self.sets):
            failures = (
                f"code of the author that fails at {len(missing)} of {len(self.sets)}; at {last.name}: {last.fault}"
            )
            remedy = "code for other sizes too, or sizes of your own for a set: `shapes: {M1: {M: 3}}`"
            raise make_fault("TASK", "shape sets", failures, "base and at least half of the sets", remedy)

    def plan_trials(self) -> Iterator[PlannedTrial[DrawT]]:
        """All trials in the order they are run; nothing is drawn."""
        for shape_set in self.sets:
            yield from self._plan_precisions(shape_set, shape_set.name, shape_set.draws, shape_set.draws[:1])
            if cases := shape_set.cases:
                name = "cases" if shape_set.name == "base" else f"cases of {shape_set.name}"
                yield from self._plan_precisions(shape_set, name, cases, cases)

    def _plan_precisions(
        self, shape_set: ShapeSet[DrawT], name: str, wide: Sequence[DrawT], declared: Sequence[DrawT]
    ) -> Iterator[PlannedTrial[DrawT]]:
        yield from self._plan_draws(shape_set, name, wide, True)
        if self.problem.has_narrow_floats:
            yield from self._plan_draws(shape_set, name, declared, False)

    def _plan_draws(
        self, shape_set: ShapeSet[DrawT], name: str, draws: Sequence[DrawT], is_wide: bool
    ) -> Iterator[PlannedTrial[DrawT]]:
        """One trial of all draws; one of each where `global` draws numbers, which may be sizes."""
        for group in [[draw] for draw in draws] if draws_numbers(self.problem) else [draws]:
            yield PlannedTrial(f"{name} {name_precision(is_wide)}", shape_set, group, is_wide)
