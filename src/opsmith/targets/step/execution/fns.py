"""Functions: how is a task's fn, written for one element, applied to a whole batch of elements?

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

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import torch
from torch import Tensor

from opsmith.targets.step.execution.authored import compile_body, fault, reads_draw
from opsmith.targets.step.execution.elementwise import Proof, prove
from opsmith.targets.step.execution.forms import Apply, Axes, batch_call, flat
from opsmith.targets.step.execution.precision import default_dtype, default_of
from opsmith.targets.step.execution.reductions import reduction_of
from opsmith.targets.step.execution.slots import SAMPLE, agree, of_one_kind, slots_of, wrong_count
from opsmith.targets.step.execution.vmap import batched
from opsmith.targets.step.language.spec import Fn, TaskSpec
from opsmith.targets.trial import TaskFault


class Mode(Enum):
    """How a fn is applied to a batch."""

    ELEMENTWISE = "elementwise"
    VMAP = "vmap"
    LOOP = "loop"


@dataclass
class Plan:
    """What was found out about a fn: its mode, and the proof where there is one. Kept for all draws of a task."""

    mode: Mode
    proof: Proof | None = None


Plans = MutableMapping[tuple[str, bool], Plan]  # (func_name, wide) -> plan; filled by use


class BatchedFn:
    """A fn at one set of sizes and one precision, on one draw of `input_data`.

    Call with the fields of the state (None for a stateless fn), the fields of the input, and the batch axes.
    """

    def __init__(self, fn: Fn, sizes: Mapping[str, int], namespace: dict[str, Any], wide: bool, plans: Plans) -> None:
        self.name = fn.func_name
        self.inputs = slots_of(fn.input_dtype, sizes, wide)
        self.outputs = slots_of(fn.output_dtype, sizes, wide)
        self._init = fn.init
        self._default = default_of(wide)
        self._body = compile_body(fn.apply, fn.func_name)
        self._apply = self._body.bind(namespace)
        self._names = namespace
        self._kept = tuple(namespace["input_data"].values())
        known = plans.get((fn.func_name, wide))
        self._plan = known or Plan(Mode.LOOP, self._prove(namespace))
        proof = self._plan.proof
        self._apply_batch: Apply | None = None
        if proof is not None:
            self._apply_batch = batch_call(self._body, proof, namespace, self.inputs, self.outputs)
        if known is None:
            with default_dtype(self._default), torch.no_grad():
                self._plan.mode = self._choose()
            plans[fn.func_name, wide] = self._plan
        self.reduction = reduction_of(self._body.tree, namespace, fn.init, self.inputs, self.outputs)
        self._set_mode()

    @property
    def mode(self) -> Mode:
        return self._plan.mode

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

    # -- modes

    def _set_mode(self) -> None:
        runs = {Mode.ELEMENTWISE: self._elementwise, Mode.VMAP: self._vmapped, Mode.LOOP: self._loop}
        self._run: Callable[[list[Tensor] | None, list[Tensor], Axes], list[Tensor]] = runs[self.mode]

    def _fall_back(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        """The loop decides: it has the precise finding, or the right results and then stays in charge."""
        results = self._loop(state, input, axes)
        self._plan.mode = Mode.LOOP
        self._set_mode()
        return results

    def _elementwise(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        assert self._apply_batch is not None
        try:
            fitted = self._fitted(self._apply_batch(state, input, axes), axes)
        except (Exception, SystemExit):  # the loop will say what it is
            fitted = None
        return self._fall_back(state, input, axes) if fitted is None else fitted

    def _vmapped(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        watched = [*(state or ()), *input, *self._kept]
        before = [tensor._version for tensor in watched]
        try:
            with torch.no_grad():
                results = flat(partial(batched, self._apply), state, input, axes)
            fitted = self._fitted(results, axes)
        except (Exception, SystemExit):  # the loop will say what it is
            fitted = None
        self._check_unwritten(state, input, before)
        return self._fall_back(state, input, axes) if fitted is None else fitted

    def _loop(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        before = [tensor._version for tensor in (*(state or ()), *input, *self._kept)]
        with torch.no_grad():
            results = flat(self._each, state, input, axes)
        self._check_unwritten(state, input, before)
        return list(results)

    def _each(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        states = [None] * batch if state is None else [list(row) for row in zip(*map(torch.unbind, state), strict=True)]
        rows = zip(*map(torch.unbind, input), strict=True)
        results = [self._one(old, list(row)) for old, row in zip(states, rows, strict=True)]
        return [torch.stack(column) for column in zip(*results, strict=True)]

    def _one(self, state: list[Tensor] | None, row: list[Tensor]) -> list[Tensor]:
        """The body on one element, checked."""
        try:
            results = self._apply(state, row)
        except (Exception, SystemExit) as error:
            raise self._body.failed(error) from error
        if not isinstance(results, (list, tuple)) or len(results) != len(self.outputs):
            raise wrong_count(self.name, len(self.outputs), results)
        return [
            slot.checked(value, f"{self.name}, value {at}")
            for at, (slot, value) in enumerate(zip(self.outputs, results, strict=True))
        ]

    # -- checks

    def _fitted(self, results: Any, axes: Axes) -> list[Tensor] | None:
        """Batched results in the declared form, or None when something does not fit."""
        if not isinstance(results, (list, tuple)) or len(results) != len(self.outputs):
            return None
        fitted = []
        for value, slot in zip(results, self.outputs, strict=True):
            tensor = value
            if not isinstance(value, Tensor):
                if not slot.holds(value):
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
        watched = [*(state or ()), *input, *self._kept]
        moved = [at for at, tensor in enumerate(watched) if tensor._version != before[at]]
        if moved:
            own = [f"state[{at}]" for at in range(len(state or ()))] + [f"input[{at}]" for at in range(len(input))]
            what = own[moved[0]] if moved[0] < len(own) else "a tensor of input_data"
            raise fault(
                "FN", self.name, f"{what} written in place", "a body without in-place changes", "clone it first"
            )

    # -- choosing a mode

    def _prove(self, namespace: Mapping[str, Any]) -> Proof | None:
        if not of_one_kind([*self.inputs, *self.outputs]):
            return None  # 0-d tensors give way to others in torch's type promotion, batches of them do not
        inputs, outputs = [slot.rank for slot in self.inputs], [slot.rank for slot in self.outputs]
        return prove(self._body.tree, namespace, outputs if self._init is not None else (), inputs, outputs)

    def _choose(self) -> Mode:
        """The first mode that agrees with the loop on a small random batch; checks purity on the way."""
        generator = torch.Generator().manual_seed(0)
        input = [slot.sample(generator) for slot in self.inputs]
        state = None if self._init is None else [slot.sample(generator) for slot in self.outputs]
        try:
            wanted, again = (self._loop(state, input, (SAMPLE,)) for _ in range(2))
        except TaskFault as finding:
            if isinstance(finding.__cause__, Exception):
                return Mode.LOOP  # it may well run on the task's own data
            raise
        if not agree(again, wanted, exactly=True):
            given = "two results for the same elements"
            raise fault("FN", self.name, given, "a pure function", "draw random numbers as a parameter")
        forms: list[tuple[Mode, Apply]] = [] if self._apply_batch is None else [(Mode.ELEMENTWISE, self._apply_batch)]
        forms.append((Mode.VMAP, partial(flat, partial(batched, self._apply))))
        for mode, apply in forms:
            if agree(self._try(apply, state, input), wanted):
                return mode
        return Mode.LOOP

    def _try(self, apply: Apply, state: list[Tensor] | None, input: list[Tensor]) -> list[Tensor] | None:
        """The results on the sample, or None when it does not work."""
        try:
            return self._fitted(apply(state, input, (SAMPLE,)), (SAMPLE,))
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
        made = self[name] = BatchedFn(spec.fn_table[name], sizes, namespace, wide, plans)
        return made
