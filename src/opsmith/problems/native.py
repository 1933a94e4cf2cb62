"""The data of a problem for programs that compute in the declared types: every draw is in them, and none in float64.

What is expected is the reference in float64 on the same inputs; how far a result may lie from it is `native_limits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.data import PlannedTrial, ProblemData, ShapeSet
from opsmith.problems.digest import hash_problem
from opsmith.problems.drawing import jitter_data, make_seed
from opsmith.problems.draws import Draw, Limits
from opsmith.problems.faults import TaskFault, is_lack_of_memory
from opsmith.problems.hidden_sizes import HiddenPool, write_sizes
from opsmith.problems.native_limits import Rounding, count_reach, make_exact_limit, make_native_limit
from opsmith.problems.precision import dtype_of
from opsmith.problems.problem import OutputTensors, Problem
from opsmith.problems.reference import compute_expected, run_unchecked
from opsmith.problems.scalar_draws import Scalars, draw_scalars
from opsmith.problems.size_kinds import Sizes
from opsmith.problems.tolerance import Limit, find_largest
from opsmith.records import Scrutiny

MOST_CASES = 4  # hand-made inputs that are tried with other scalars at each level
LOOSE = 0.05  # draws with other scalars may be as loose, or twice as loose as with the file's


@dataclass
class NativeDraw(Draw):
    """A draw whose limits are those of a program in the declared types."""

    is_hidden: bool = False
    scalars: Scalars | None = None  # of a hidden draw; None: those of the file

    @cached_property
    def problem(self) -> Problem:
        stated = self.standard.problem
        return stated if self.scalars is None else replace(stated, scalars=self.scalars)

    @cached_property
    def expected(self) -> list[list[Tensor]]:
        """What is expected per output and tensor, before it is rounded to the declared type."""
        is_random = self.declared.random_global  # the two precisions hold different numbers
        return [list(row) for row in (compute_expected(self.problem, self.declared) if is_random else self.values)]

    @cached_property
    def declared_limits(self) -> Limits:
        """Per output and tensor. Raises TaskFault."""
        return [
            [self._make_limit(output, number, tensor) for tensor in range(len(output.types))]
            for number, output in enumerate(self.problem.outputs)
        ]

    def _make_limit(self, output: OutputTensors, number: int, tensor: int) -> Limit:
        type_, value = output.types[tensor], self.expected[number][tensor]
        place = sum(len(output.types) for output in self.problem.outputs[:number]) + tensor
        if not self.standard.exact[number][tensor]:
            working = self.problem.choose_working_dtype(type_)
            rounded, moved = (cast(Tensor, outputs[place]) for outputs in self._run_rounded(working))
            rounding = Rounding(working, rounded, moved, self._reach[place], self._scale)
            return make_native_limit(output, type_, value, rounding)
        if not self.problem.has_narrow_floats:
            return make_exact_limit(type_, value, value)
        return make_exact_limit(type_, value, cast(Tensor, self._run_rounded(self._working)[0][place]))

    @property
    def looseness(self) -> float:
        """The largest error that is allowed, in parts of the largest expected value of its tensor. Raises TaskFault."""
        limits = [limit for row in self.declared_limits for limit in row if limit.allowed is not None]
        errors = [(float(torch.as_tensor(limit.allowed).max()), find_largest(limit.expected)) for limit in limits]
        return max((allowed / largest for allowed, largest in errors if largest), default=0.0)

    @property
    def label(self) -> str:
        if not self.is_hidden:
            return super().label
        numbers = ", ".join(f"{name} = {value}" for name, value in (self.scalars or {}).items())
        where = f"case {self.seed} at hidden numbers" if self.is_case else self.shape_set
        return f"{where}{' ' if self.is_case else ', '}{numbers}" if numbers else where

    @property
    def _working(self) -> str:
        """The dtype in which decisions are made."""
        return self.problem.accumulation or "fp32"

    def round_data(self, declared: Bindings) -> Bindings | None:
        return _raise_floats(declared, dtype_of(self._working)) if self.problem.has_narrow_floats else None

    @cached_property
    def _scale(self) -> float:
        floats = [tensor for tensor in self.wide.input_data.values() if tensor.is_floating_point()]
        return max((find_largest(tensor) for tensor in floats), default=0.0)

    @cached_property
    def _reach(self) -> list[int]:
        return count_reach(self.problem, self.wide)

    @cached_property
    def _rounded(self) -> dict[str, tuple[list[object], list[object]]]:
        return {}

    def _run_rounded(self, working: str) -> tuple[list[object], list[object]]:
        """The reference in a working dtype, and in float64 on inputs one rounding error of it away."""
        if working not in self._rounded:
            rounding = torch.finfo(dtype_of(working)).eps
            moved = jitter_data(self.problem, self.declared, make_seed(self.seed_text), rounding)
            runs = (_raise_floats(self.declared, dtype_of(working)), moved)
            rounded, jittered = (run_unchecked(self.problem, bindings) for bindings in runs)
            self._rounded[working] = rounded, jittered
        return self._rounded[working]


def _raise_floats(bindings: Bindings, dtype: torch.dtype) -> Bindings:
    """The same numbers, copied, with every float that is narrower than `dtype` in it."""
    tensors = {name: _raise_tensor(tensor, dtype) for name, tensor in bindings.input_data.items()}
    return bind_tensors(bindings.sizes, tensors, dict(bindings.namespace), False, bindings.random_global)


def _raise_tensor(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    is_narrower = tensor.is_floating_point() and torch.finfo(tensor.dtype).bits < torch.finfo(dtype).bits
    return tensor.to(dtype if is_narrower else tensor.dtype, copy=True)


class NativeData(ProblemData[NativeDraw]):
    """All draws of a problem in its declared types, and those at hidden sizes."""

    def make_draw(self, shape_set: str, overrides: Mapping[str, int], seed: int, is_case: bool = False) -> NativeDraw:
        return NativeDraw(self, shape_set, overrides, seed, is_case)

    def _plan_precisions(
        self,
        shape_set: ShapeSet[NativeDraw],
        name: str,
        wide: Sequence[NativeDraw],
        declared: Sequence[NativeDraw],
    ) -> Iterator[PlannedTrial[NativeDraw]]:
        yield from self._plan_draws(shape_set, name, wide, False)

    def draw_hidden(self, scrutiny: Scrutiny) -> Iterator[NativeDraw]:
        """One draw at each of the hidden sizes, at all of which the reference runs, then hand-made inputs with other
        scalars than the file's. Raises TaskFault for lack of memory."""
        yield from self._hidden_pool.list_materials(scrutiny)
        for level in scrutiny.levels:
            yield from self._draw_cases(Scrutiny(scrutiny.secret, level))

    @cached_property
    def _hidden_pool(self) -> HiddenPool[NativeDraw]:
        return HiddenPool(self.problem, self._draw_at)

    def _draw_at(self, sizes: Sizes, seed: int) -> NativeDraw | None:
        return self._choose_scalars(NativeDraw(self, write_sizes(sizes), sizes, seed, is_hidden=True), seed)

    def _draw_cases(self, scrutiny: Scrutiny) -> Sequence[NativeDraw]:
        """Those of a level alone: what shows an epsilon is often made by hand."""
        if scrutiny not in self._cases:
            drawn = []
            for number, case in enumerate(self.problem.cases[:MOST_CASES]):
                seed = scrutiny.draw_number(scrutiny.level, "scalars", hash_problem(self.problem), str(number))
                if draw_scalars(self.problem, seed) != self.problem.scalars:
                    sizes = self.problem.shapes.get(case.shape, {})
                    draw = NativeDraw(self, "case", sizes, number, is_case=True, is_hidden=True)
                    drawn.append(self._choose_scalars(draw, seed))
            self._cases[scrutiny] = [draw for draw in drawn if draw is not None and draw.scalars is not None]
        return self._cases[scrutiny]

    @cached_property
    def _cases(self) -> dict[Scrutiny, Sequence[NativeDraw]]:
        return {}

    def _choose_scalars(self, draw: NativeDraw, seed: int) -> NativeDraw | None:
        """The draw with other scalars, or with the file's where the reference does not run with them or is ill
        conditioned; None: it does not run at all. Raises TaskFault for lack of memory."""
        scalars = draw_scalars(self.problem, seed)
        if scalars != self.problem.scalars:
            moved = replace(draw, scalars=scalars)
            if _has_limits(moved) and moved.looseness <= LOOSE:
                return moved
            if _has_limits(moved) and _has_limits(draw) and moved.looseness <= 2 * draw.looseness:
                return moved
        return draw if _has_limits(draw) else None


def _has_limits(draw: NativeDraw) -> bool:
    """Whether data can be drawn there and the reference runs. Raises TaskFault for lack of memory."""
    try:
        _ = draw.declared_limits
    except TaskFault as fault:
        if is_lack_of_memory(fault.__cause__):
            raise
        return False
    return True
