"""Functions: a task's fn, written for one element, applied to a whole batch of elements.

A `BatchedFn` runs in one of three modes, chosen once per task, precision and fn by comparing with the per-element loop:

    ELEMENTWISE  the body is called once; proven safe by `elementwise`
    VMAP         the body is called once, on functorch's batched tensors
    LOOP         the body is called per element: what the other two must agree with

All tensors are batch-first, `[*axes, *layout(field)]`, with any number of batch axes. Results have exactly the declared
layout and dtype; they may share memory with operands (as Copy's results do), so nobody writes into them. A body that
fails, writes in place, is random or returns something else than declared is the author's fault: TaskFault with an FN
finding.
Run this without `torch.inference_mode`, whose tensors count no writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.faults import TaskFault, make_fault
from opsmith.problems.narrowing import differs_from, run_raised
from opsmith.problems.precision import default_dtype, default_of
from opsmith.targets.step.execution.bodies import compile_body, reads_draw
from opsmith.targets.step.execution.elementwise import Proof, prove_elementwise
from opsmith.targets.step.execution.forms import Apply, Axes, batch_call, flatten_batch
from opsmith.targets.step.execution.reductions import find_reduction
from opsmith.targets.step.execution.slots import SAMPLE, agree_closely, blame_count, of_one_kind, slots_of
from opsmith.targets.step.execution.vmap import map_batch
from opsmith.targets.step.language.spec import FnSpec, TaskSpec

NARROW_SAMPLE = 16  # elements on which results in float64 throughout are compared, ...
SAMPLED = 1 << 18  # ... or those that have this many numbers


class Mode(Enum):
    """How a fn is applied to a batch."""

    ELEMENTWISE = "elementwise"
    VMAP = "vmap"
    LOOP = "loop"


@dataclass
class FnPlan:
    """What was found out about a fn: its mode, and the proof where there is one. Kept for all draws of a task."""

    mode: Mode
    proof: Proof | None = None
    asks_narrow: bool = False  # for floats below float64 in a wide run


Plans = MutableMapping[tuple[str, bool], FnPlan]  # (func_name, wide) -> plan; filled by use


class BatchedFn:
    """A fn at one set of sizes and one precision, on one draw of `input_data`.

    Call with the fields of the state (None for a stateless fn), the fields of the input, and the batch axes.
    """

    def __init__(
        self, fn: FnSpec, sizes: Mapping[str, int], namespace: dict[str, Any], wide: bool, plans: Plans
    ) -> None:
        self.name = fn.func_name
        self.inputs = slots_of(fn.input_dtype, sizes, wide)
        self.outputs = slots_of(fn.output_dtype, sizes, wide)
        self._init = fn.init
        self._default = default_of(wide)
        self._body = compile_body(fn.apply, fn.func_name)
        self._apply = self._body.bind_names(namespace)
        self._names = namespace
        self._shared_tensors = tuple(namespace["input_data"].values())
        plan = plans.get((fn.func_name, wide))
        self._plan = plan or FnPlan(Mode.LOOP, self._find_proof(namespace))
        proof = self._plan.proof
        self._apply_batch: Apply | None = None
        if proof is not None:
            self._apply_batch = batch_call(self._body, proof, namespace, self.inputs, self.outputs)
        if plan is None:
            with default_dtype(self._default), torch.no_grad():
                self._plan.mode = self._choose_mode()
                self._plan.asks_narrow = wide and self._run_raised(SAMPLE)[1]
            plans[fn.func_name, wide] = self._plan
        self.reduction = find_reduction(self._body.tree, namespace, fn.init, self.inputs, self.outputs)
        self._set_mode()

    @property
    def mode(self) -> Mode:
        return self._plan.mode

    @property
    def is_direct(self) -> bool:
        """Whether the body itself, called on whole batches whose fields have equal ranks, computes them."""
        proof = self._plan.proof
        return self.mode is Mode.ELEMENTWISE and proof is not None and not proof.structural

    @property
    def reads_draw(self) -> bool:
        """Whether the body may see what differs from draw to draw: parameters, or code of `global`."""
        return reads_draw(self._body.code, self._names)

    def __call__(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        """The results of all elements of the batch, one tensor per field. Raises TaskFault."""
        if 0 in axes:
            return [torch.empty((*axes, *slot.shape), dtype=slot.dtype) for slot in self.outputs]
        if torch.get_default_dtype() is not self._default:
            with default_dtype(self._default):
                return self(state, input, axes)
        return self._run(state, input, axes)

    def init_state(self, axes: Axes) -> list[Tensor]:
        """The start state of a batch; only for fns with `init`."""
        assert self._init is not None, f"{self.name} is stateless"
        pairs = zip(self.outputs, self._init, strict=True)
        return [torch.full((*axes, *slot.shape), value, dtype=slot.dtype) for slot, value in pairs]

    # -- on random elements

    @cached_property
    def narrows(self) -> bool:
        """Whether it computes with less than float64 in a wide run, as far as random elements show."""
        if not self._plan.asks_narrow:
            return False
        own, (raised, _) = self._run_sample(NARROW_SAMPLE), self._run_raised(NARROW_SAMPLE)
        if raised is None or isinstance(own, TaskFault):
            return True
        return any(differs_from(*pair) for pair in zip(own, raised, strict=True))

    @property
    def sample_fault(self) -> TaskFault | None:
        """The finding when the body fails on them."""
        outcome = self._run_sample(SAMPLE)
        return outcome if isinstance(outcome, TaskFault) else None

    def _run_raised(self, limit: int) -> tuple[list[Tensor] | None, bool]:
        return run_raised(lambda: self._run_loop(*self._draw_samples(self._choose_count(limit))), self._names)

    def _run_sample(self, limit: int) -> list[Tensor] | TaskFault:
        try:
            return self._run_loop(*self._draw_samples(self._choose_count(limit)))
        except TaskFault as finding:
            return finding

    def _run_loop(self, state: list[Tensor] | None, input: list[Tensor]) -> list[Tensor]:
        with default_dtype(self._default), torch.no_grad():
            return self._run_each(state, input, (len(input[0]),))

    def _choose_count(self, limit: int) -> int:
        """How many elements, at least one, have no more than SAMPLED numbers."""
        numbers = sum(math.prod(slot.shape) for slot in (*self.inputs, *self.outputs))
        return max(1, min(limit, SAMPLED // numbers))

    def _draw_samples(self, count: int) -> tuple[list[Tensor] | None, list[Tensor]]:
        """Random elements: (state, input)."""
        generator = torch.Generator().manual_seed(0)
        input = [slot.draw_sample(generator, count) for slot in self.inputs]
        return None if self._init is None else [slot.draw_sample(generator, count) for slot in self.outputs], input

    # -- modes

    def _set_mode(self) -> None:
        runs = {Mode.ELEMENTWISE: self._run_elementwise, Mode.VMAP: self._run_vmapped, Mode.LOOP: self._run_each}
        self._run: Callable[[list[Tensor] | None, list[Tensor], Axes], list[Tensor]] = runs[self.mode]

    def _fall_back_to_loop(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        """The loop decides: it has the precise finding, or the right results and then stays in charge."""
        results = self._run_each(state, input, axes)
        self._plan.mode = Mode.LOOP
        self._set_mode()
        return results

    def _run_elementwise(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        assert self._apply_batch is not None
        try:
            fitted = self._fit_results(self._apply_batch(state, input, axes), axes)
        except (Exception, SystemExit):  # the loop will say what it is
            fitted = None
        return self._fall_back_to_loop(state, input, axes) if fitted is None else fitted

    def _run_vmapped(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        watched = [*(state or ()), *input, *self._shared_tensors]
        before = [tensor._version for tensor in watched]
        try:
            with torch.no_grad():
                results = flatten_batch(partial(map_batch, self._apply), state, input, axes)
            fitted = self._fit_results(results, axes)
        except (Exception, SystemExit):  # the loop will say what it is
            fitted = None
        self._check_unwritten(state, input, before)
        return self._fall_back_to_loop(state, input, axes) if fitted is None else fitted

    def _run_each(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        before = [tensor._version for tensor in (*(state or ()), *input, *self._shared_tensors)]
        with torch.no_grad():
            results = flatten_batch(self._apply_each, state, input, axes)
        self._check_unwritten(state, input, before)
        return list(results)

    def _apply_each(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        states = [None] * batch if state is None else [list(row) for row in zip(*map(torch.unbind, state), strict=True)]
        rows = zip(*map(torch.unbind, input), strict=True)
        results = [self._apply_one(old, list(row)) for old, row in zip(states, rows, strict=True)]
        return [torch.stack(column) for column in zip(*results, strict=True)]

    def _apply_one(self, state: list[Tensor] | None, row: list[Tensor]) -> list[Tensor]:
        """The body on one element, checked."""
        try:
            results = self._apply(state, row)
        except (Exception, SystemExit) as error:
            raise self._body.blame_author(error) from error
        if not isinstance(results, (list, tuple)) or len(results) != len(self.outputs):
            raise blame_count(self.name, len(self.outputs), results)
        return [
            slot.check_value(value, f"{self.name}, value {number}")
            for number, (slot, value) in enumerate(zip(self.outputs, results, strict=True))
        ]

    # -- checks

    def _fit_results(self, results: Any, axes: Axes) -> list[Tensor] | None:
        """Batched results in the declared form, or None when something does not fit."""
        if not isinstance(results, (list, tuple)) or len(results) != len(self.outputs):
            return None
        fitted = []
        for value, slot in zip(results, self.outputs, strict=True):
            tensor = value
            if not isinstance(value, Tensor):
                if not slot.holds_number(value):
                    return None
                tensor = torch.full(axes, value, dtype=slot.dtype)
            elif value.dtype is not slot.dtype:
                if value.dtype is not slot.declared:
                    return None
                tensor = value.to(slot.dtype)
            if tensor.shape != (*axes, *slot.shape):
                return None
            fitted.append(tensor)
        return fitted

    def _check_unwritten(self, state: list[Tensor] | None, input: list[Tensor], before: Sequence[int]) -> None:
        """Raises TaskFault when a version counter moved: the body wrote in place."""
        watched = [*(state or ()), *input, *self._shared_tensors]
        moved = [number for number, tensor in enumerate(watched) if tensor._version != before[number]]
        if moved:
            own = [f"state[{number}]" for number in range(len(state or ()))] + [
                f"input[{number}]" for number in range(len(input))
            ]
            what = own[moved[0]] if moved[0] < len(own) else "a tensor of input_data"
            raise make_fault(
                "FN", self.name, f"{what} written in place", "a body without in-place changes", "clone it first"
            )

    # -- choosing a mode

    def _find_proof(self, namespace: Mapping[str, Any]) -> Proof | None:
        if not of_one_kind([*self.inputs, *self.outputs]):
            return None  # 0-d tensors give way to others in torch's type promotion, batches of them do not
        inputs, outputs = [slot.rank for slot in self.inputs], [slot.rank for slot in self.outputs]
        return prove_elementwise(self._body.tree, namespace, outputs if self._init is not None else (), inputs, outputs)

    def _choose_mode(self) -> Mode:
        """The first mode that agrees with the loop on a small random batch; checks purity on the way."""
        state, input = self._draw_samples(SAMPLE)
        try:
            expected, again = (self._run_each(state, input, (SAMPLE,)) for _ in range(2))
        except TaskFault as finding:
            if isinstance(finding.__cause__, Exception):
                return Mode.LOOP  # it may well run on the task's own data
            raise
        if not agree_closely(again, expected, exactly=True):
            reason = "two results for the same elements"
            raise make_fault("FN", self.name, reason, "a pure function", "draw random numbers as a parameter")
        forms: list[tuple[Mode, Apply]] = [] if self._apply_batch is None else [(Mode.ELEMENTWISE, self._apply_batch)]
        forms.append((Mode.VMAP, partial(flatten_batch, partial(map_batch, self._apply))))
        for mode, apply in forms:
            if agree_closely(self._try_form(apply, state, input), expected):
                return mode
        return Mode.LOOP

    def _try_form(self, apply: Apply, state: list[Tensor] | None, input: list[Tensor]) -> list[Tensor] | None:
        """The results on the sample, or None when it does not work."""
        try:
            return self._fit_results(apply(state, input, (SAMPLE,)), (SAMPLE,))
        except (Exception, SystemExit):
            return None


class FnTable(dict[str, BatchedFn]):
    """func_name -> BatchedFn, prepared on first use."""

    def __init__(
        self, spec: TaskSpec, sizes: Mapping[str, int], namespace: dict[str, Any], wide: bool, plans: Plans
    ) -> None:
        super().__init__()
        self._made = (spec, sizes, namespace, wide, plans)

    def __missing__(self, name: str) -> BatchedFn:
        spec, sizes, namespace, wide, plans = self._made
        prepared = self[name] = BatchedFn(spec.fn_table[name], sizes, namespace, wide, plans)
        return prepared
