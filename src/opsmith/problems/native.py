"""The data of a problem for programs that compute in the declared types: every draw is in them, and none in float64.

What is expected is the reference in float64 on the same inputs; how far a result may lie from it is `native_limits`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.data import PlannedTrial, ProblemData, ShapeSet
from opsmith.problems.digest import hash_problem
from opsmith.problems.distributions import ORDERED, Shaping, has_equal_numbers
from opsmith.problems.drawing import jitter_data, make_seed
from opsmith.problems.draws import Draw, Limits
from opsmith.problems.faults import TaskFault, is_lack_of_memory
from opsmith.problems.hidden_sizes import HiddenPool, write_sizes
from opsmith.problems.native_limits import (
    Reach,
    Rounding,
    bound_error,
    choose_factor,
    count_reach,
    make_exact_limit,
    make_native_limit,
)
from opsmith.problems.precision import dtype_of, widen_floats
from opsmith.problems.problem import ArrayType, Distribution, OutputTensors, Problem
from opsmith.problems.reference import compute_expected, run_unchecked
from opsmith.problems.scalar_draws import FAR, Scalars, draw_scalars
from opsmith.problems.shaped_draws import ShapedPool
from opsmith.problems.size_kinds import Sizes
from opsmith.problems.tolerance import ROUNDINGS, WIDEST, Limit, find_largest, measure_distance
from opsmith.records import Level, Scrutiny

MOST_CASES = {Level.CHEAP: 1, Level.FULL: 4}  # hand-made inputs that are tried with other scalars
LOOSE = 0.05  # draws with other scalars may be as loose, or twice as loose as with the file's
_LEAST = 2**10  # times the least normal number of its type must a result hold: smaller ones may count as zero on a GPU


@dataclass
class NativeDraw(Draw):
    """A draw whose limits are those of a program in the declared types."""

    is_hidden: bool = False
    scalars: Scalars | None = None  # other than the file's; None: those

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
            return make_native_limit(output, type_, value, self._measure_rounding(type_, place, value))
        if not self.problem.has_narrow_floats:
            return make_exact_limit(type_, value, value)
        return make_exact_limit(type_, value, cast(Tensor, self._run_rounded(self._working)[0][place]))

    def _measure_rounding(self, type_: ArrayType, place: int, value: Tensor) -> Rounding:
        """Of the tensor at a place among all outputs', of which `value` is expected."""
        working = self.problem.choose_working_dtype(type_)
        rounded, moved = (cast(Tensor, outputs[place]) for outputs in self._run_rounded(working))
        reach, terms = self._reach[place]
        if self.shaping is not None:  # n equal terms may all round the same way, and a result near 0 come of large ones
            largest = find_largest(value)
            wanted = max(reach, self._scale / largest if largest else 0.0)
            reach = round(min(wanted, WIDEST / 10 / torch.finfo(dtype_of(working)).eps) ** 2)
        return Rounding(working, rounded, moved, reach, terms, self._scale)

    def explain_unfit(self, usual: NativeDraw) -> str:
        """Why no program can be judged on this draw of a distribution, in few words; "": it can. `usual` is one of the
        declared data. Raises TaskFault for lack of memory."""
        try:
            limits = [limit for row in self.declared_limits for limit in row]
            tensors = self.declared.input_data
            if not all(bool(torch.isfinite(widen_floats(tensor)).all()) for tensor in tensors.values()):
                return "numbers beyond a declared type"
            is_open = not self.problem.ties and any(limit.allowed is None for limit in limits)
            is_ordered = self.shaping is not None and self.shaping.kind in ORDERED
            if is_open and not is_ordered and has_equal_numbers(tensors):
                return "equal numbers, and no `ties` that say which of them counts"
            eps = torch.finfo(dtype_of(self._working)).eps
            moved = run_unchecked(
                self.problem, jitter_data(self.problem, self.declared, make_seed(self.seed_text), eps, is_by_row=True)
            )
        except TaskFault as fault:
            if is_lack_of_memory(fault.__cause__):
                raise
            return f"{fault.diagnostic.where}: {fault.diagnostic.given}".splitlines()[0]
        outputs = [(output, type_) for output in self.problem.outputs for type_ in output.types]
        usual_limits = [limit for row in usual.declared_limits for limit in row]
        reasons = (
            self._explain_unfit_output(place, *row)
            for place, row in enumerate(zip(outputs, limits, moved, usual_limits, strict=True))
        )
        return next(filter(None, reasons), "")

    def _explain_unfit_output(
        self, place: int, entry: tuple[OutputTensors, ArrayType], limit: Limit, moved: Any, usual: Limit
    ) -> str:
        """Why one output cannot be judged; `moved` is what it is on inputs that are a rounding error away."""
        output, type_ = entry
        if limit.allowed is None:
            is_flipped = not self.problem.ties and bool((moved.to(limit.dtype) != limit.expected).any())
            return f"decisions of {output.name} that rounding makes" if is_flipped else ""
        if not bool(torch.isfinite(limit.expected).all()):
            return f"infinite numbers in {output.name}"
        rounding, largest = self._measure_rounding(type_, place, limit.expected), find_largest(limit.expected)
        error = choose_factor(rounding.working) * measure_distance(moved, limit.expected)
        if output.rtol is not None or output.atol is not None:
            is_wide = max(error, measure_distance(rounding.rounded, limit.expected)) > float(limit.allowed.min())
            return f"rounding moves {output.name} by more than its own tolerance" if is_wide else ""
        eps = torch.finfo(dtype_of(rounding.working)).eps
        is_scaled = self.shaping is not None and self.shaping.kind is Distribution.SCALED
        vanishing = (
            0.0 if is_scaled else WIDEST / 10 * find_largest(usual.expected)
        )  # right programs may lose its digits
        if 0 < largest < max(vanishing, _LEAST * torch.finfo(limit.dtype).tiny):
            return f"numbers of {output.name} too small for {type_.dtype}"
        part = max(bound_error(limit.expected, rounding), error) / (largest or 1.0)
        widest = max(WIDEST, ROUNDINGS * eps)
        return f"rounding alone moves {output.name} by {part:.0e} of its largest number" if part > widest else ""

    def forget_steps(self) -> None:
        """Keeps what programs are given and compared with."""
        for name in ("values", "expected", "_rounded"):
            self.__dict__.pop(name, None)

    @property
    def looseness(self) -> float:
        """The largest error that is allowed, in parts of the largest expected value of its tensor. Raises TaskFault."""
        limits = [limit for row in self.declared_limits for limit in row if limit.allowed is not None]
        errors = [(float(torch.as_tensor(limit.allowed).max()), find_largest(limit.expected)) for limit in limits]
        return max((allowed / largest for allowed, largest in errors if largest), default=0.0)

    @property
    def label(self) -> str:
        numbers = ", ".join(f"{name} = {value}" for name, value in (self.scalars or {}).items())
        if not self.is_hidden:
            return f"{super().label}{numbers and f', {numbers}'}"
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
    def _reach(self) -> list[Reach]:
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
    """All draws of a problem in its declared types, those at hidden sizes, and those of other distributions."""

    def make_draw(
        self,
        shape_set: str,
        overrides: Mapping[str, int],
        seed: int,
        is_case: bool = False,
        shaping: Shaping | None = None,
    ) -> NativeDraw:
        return NativeDraw(self, shape_set, overrides, seed, is_case, shaping)

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

    def draw_shaped(self, scrutiny: Scrutiny) -> Iterator[list[NativeDraw]]:
        """Draws of other distributions, those of equal sizes together. Raises TaskFault for lack of memory."""
        return self._shaped_pool.list_groups(scrutiny)

    def explain_distributions(self) -> dict[Distribution, str]:
        """Those that programs are not tried on, and why. Raises TaskFault for lack of memory."""
        return self._shaped_pool.explain_left_out()

    @cached_property
    def _shaped_pool(self) -> ShapedPool[NativeDraw]:
        return ShapedPool(self.problem, self._draw_fit)

    def _draw_fit(self, shape_set: str, overrides: Mapping[str, int], seed: int, shaping: Shaping) -> NativeDraw | str:
        """With the file's scalars where every tensor is reshaped, else with others that are far from them, if programs
        can be judged there: a large sum that only a large limit lets through is seen by both together."""
        draw = self.make_draw(shape_set, overrides, seed, shaping=shaping)
        scalars = draw_scalars(self.problem, seed, FAR)
        draws = [draw]
        if shaping.variant and scalars != self.problem.scalars:
            draws.insert(0, replace(draw, scalars=scalars))
        for drawn in draws:
            reason = drawn.explain_unfit(self._first)
            if not reason:
                drawn.forget_steps()
                return drawn
        return reason

    @cached_property
    def _hidden_pool(self) -> HiddenPool[NativeDraw]:
        return HiddenPool(self.problem, self._draw_at)

    def _draw_at(self, sizes: Sizes, seed: int) -> NativeDraw | None:
        return self._choose_scalars(NativeDraw(self, write_sizes(sizes), sizes, seed, is_hidden=True), seed)

    def _draw_cases(self, scrutiny: Scrutiny) -> Sequence[NativeDraw]:
        """Those of a level alone: what shows an epsilon is often made by hand."""
        if scrutiny not in self._cases:
            drawn, cases = [], list(enumerate(self.problem.cases))
            source = random.Random(scrutiny.draw_number(scrutiny.level, "cases", hash_problem(self.problem)))
            for number, case in source.sample(cases, min(len(cases), MOST_CASES[scrutiny.level])):
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
