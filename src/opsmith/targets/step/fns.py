"""Functions: how is a task's fn, written for one element, applied to a whole batch of elements?

A `BatchedFn` runs in one of three modes, chosen once per task, precision and fn by comparing with the per-element loop:

    ELEMENTWISE  the body is called once; proven safe by `elementwise`
    VMAP         the body is called once, on functorch's batched tensors
    LOOP         the body is called per element: what the other two must agree with

All tensors are batch-first, `[B, *layout(field)]`. Results have exactly the declared layout and dtype; they may share
memory with operands (as Copy's results do), so nobody writes into them. A body that fails, writes in place, is random
or returns something else than declared is the author's fault: TaskFault with an FN finding.
Run this without `torch.inference_mode`, whose tensors count no writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from opsmith.targets import TaskFault
from opsmith.targets.step.authored import compile_body, fault
from opsmith.targets.step.elementwise import Proof, prove
from opsmith.targets.step.precision import TORCH_DTYPES, default_dtype, default_of, is_floating, torch_dtype
from opsmith.targets.step.spec import Fn, TaskSpec
from opsmith.targets.step.types import Field, element_dims, fields_of, layout, scalar_of
from opsmith.targets.step.vmap import batched

SAMPLE = 3  # elements on which a mode is compared with the loop
_AGREE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-1}  # rtol and atol


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


@dataclass(frozen=True)
class Slot:
    """One field as tensors see it: the shape of an element and the dtypes that a result may have."""

    field: Field
    shape: tuple[int, ...]
    dtype: torch.dtype
    declared: torch.dtype  # differs from `dtype` in a wide run; a body that narrows on purpose may return it

    @classmethod
    def of(cls, field: Field, sizes: Mapping[str, int], wide: bool) -> Slot:
        return cls(field, layout(field, sizes), torch_dtype(field, wide), TORCH_DTYPES[scalar_of(field).name])

    def __str__(self) -> str:
        return f"shape {self.shape} and {_short(self.dtype)} for {self.field}"


class BatchedFn:
    """A fn at one set of sizes and one precision, on one draw of `input_data`.

    Call with the fields of the state (None for a stateless fn), the fields of the input, and the batch size B.
    """

    def __init__(self, fn: Fn, sizes: Mapping[str, int], namespace: dict[str, Any], wide: bool, plans: Plans) -> None:
        self.name = fn.func_name
        self._inputs = tuple(Slot.of(field, sizes, wide) for field in fields_of(fn.input_dtype))
        self._outputs = tuple(Slot.of(field, sizes, wide) for field in fields_of(fn.output_dtype))
        self._init = fn.init
        self._default = default_of(wide)
        self._body = compile_body(fn.apply, fn.func_name)
        self._apply = self._body.bind(namespace)
        self._kept = tuple(namespace["input_data"].values())
        known = plans.get((fn.func_name, wide))
        self._plan = known or Plan(Mode.LOOP, self._prove(namespace))
        self._prepare_batch_last(namespace)
        if known is None:
            with default_dtype(self._default), torch.no_grad():
                self._plan.mode = self._choose()
            plans[fn.func_name, wide] = self._plan
        self._set_mode()

    @property
    def mode(self) -> Mode:
        return self._plan.mode

    def __call__(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        """The results of all B elements, one tensor per field. Raises TaskFault."""
        if batch == 0:
            return [torch.empty((0, *slot.shape), dtype=slot.dtype) for slot in self._outputs]
        if torch.get_default_dtype() is not self._default:
            with default_dtype(self._default):
                return self(state, input, batch)
        return self._run(state, input, batch)

    def init_state(self, batch: int) -> list[Tensor]:
        """The start state of B elements; only for fns with `init`."""
        assert self._init is not None, f"{self.name} is stateless"
        pairs = zip(self._outputs, self._init, strict=True)
        return [torch.full((batch, *slot.shape), value, dtype=slot.dtype) for slot, value in pairs]

    # -- modes

    def _set_mode(self) -> None:
        runs = {Mode.ELEMENTWISE: self._elementwise, Mode.VMAP: self._vmapped, Mode.LOOP: self._loop}
        self._run: Callable[[list[Tensor] | None, list[Tensor], int], list[Tensor]] = runs[self.mode]

    def _fall_back(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        """The loop decides, and stays in charge: it either has the right answer or the precise finding."""
        self._plan.mode = Mode.LOOP
        self._set_mode()
        return self._loop(state, input, batch)

    def _elementwise(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        try:
            results = self._last_call(state, input, batch) if self._batch_last else self._apply(state, input)
            fitted = self._fitted(results, batch)
        except Exception:
            fitted = None
        return self._fall_back(state, input, batch) if fitted is None else fitted

    def _last_call(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Any]:
        """The body on batch-last views; results batch-first again."""
        old = None if state is None else [_last(part) for part in state]
        results = self._apply_last(old, [_last(part) for part in input])
        first = [result.movedim(-1, 0) if isinstance(result, Tensor) else result for result in results]
        # a result made of input_data alone has a last axis of 1
        return [
            part.expand(batch, *part.shape[1:]) if isinstance(part, Tensor) and part.shape[0] == 1 else part
            for part in first
        ]

    def _vmapped(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        watched = [*(state or ()), *input, *self._kept]
        before = [tensor._version for tensor in watched]
        try:
            with torch.no_grad():
                results = batched(self._apply, state, input, batch)
            fitted = self._fitted(results, batch)
        except Exception:
            fitted = None
        self._check_unwritten(state, input, before)
        return self._fall_back(state, input, batch) if fitted is None else fitted

    def _loop(self, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Tensor]:
        before = [tensor._version for tensor in (*(state or ()), *input, *self._kept)]
        states = [None] * batch if state is None else [list(row) for row in zip(*map(torch.unbind, state), strict=True)]
        rows = zip(*map(torch.unbind, input), strict=True)
        with torch.no_grad():
            results = [self._one(old, list(row)) for old, row in zip(states, rows, strict=True)]
        self._check_unwritten(state, input, before)
        return [torch.stack(column) for column in zip(*results, strict=True)]

    def _one(self, state: list[Tensor] | None, row: list[Tensor]) -> list[Tensor]:
        """The body on one element, checked."""
        try:
            results = self._apply(state, row)
        except Exception as error:
            raise self._body.failed(error) from error
        if not isinstance(results, (list, tuple)) or len(results) != len(self._outputs):
            raise self._wrong_count(results)
        return [self._checked(at, value) for at, value in enumerate(results)]

    # -- checks

    def _fitted(self, results: Any, batch: int) -> list[Tensor] | None:
        """Batched results in the declared form, or None when something does not fit."""
        if not isinstance(results, (list, tuple)) or len(results) != len(self._outputs):
            return None
        fitted = []
        for value, slot in zip(results, self._outputs, strict=True):
            tensor = value
            if not isinstance(value, Tensor):
                if not _is_number_of(value, slot):
                    return None
                tensor = torch.full((batch,), value, dtype=slot.dtype)
            elif value.dtype is not slot.dtype:
                if value.dtype is not slot.declared:
                    return None
                tensor = value.to(slot.dtype)
            if tensor.shape != (batch, *slot.shape):
                return None
            fitted.append(tensor)
        return fitted

    def _checked(self, at: int, value: Any) -> Tensor:
        """One field of one element's result. Raises TaskFault."""
        slot = self._outputs[at]
        if isinstance(value, Tensor):
            if value.shape == slot.shape and value.dtype in (slot.dtype, slot.declared):
                return value.to(slot.dtype)
        elif _is_number_of(value, slot):
            return torch.tensor(value, dtype=slot.dtype)
        raise self._wrong_value(at, value)

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

    def _wrong_count(self, results: Any) -> TaskFault:
        wanted = f"a list of {len(self._outputs)} values"
        given = f"{len(results)} values" if isinstance(results, (list, tuple)) else f"{type(results).__name__}"
        return fault("FN", self.name, given, wanted, "return [value, ...], one per field of output_dtype")

    def _wrong_value(self, at: int, value: Any) -> TaskFault:
        slot, where = self._outputs[at], f"{self.name}, value {at}"
        if not isinstance(value, Tensor):
            given = f"{type(value).__name__} {value!r}" if isinstance(value, (int, float)) else type(value).__name__
            return fault("FN", where, given, f"a tensor of {slot}", "return a tensor")
        given = f"a tensor of shape {tuple(value.shape)} and {_short(value.dtype)}"
        if tuple(value.shape) != slot.shape:
            declare = "fp32" if value.dim() == 0 else "its shape as a Buffer"
            return fault("FN", where, given, str(slot), f"expand the result, or declare {declare}")
        return fault("FN", where, given, str(slot), "convert with .to(input[0].dtype), or declare its type")

    # -- choosing a mode

    def _prove(self, namespace: Mapping[str, Any]) -> Proof | None:
        if not _same_kinds([*self._inputs, *self._outputs]):
            return None  # 0-d tensors give way to others in torch's type promotion, batches of them do not
        inputs, outputs = _ranks(self._inputs), _ranks(self._outputs)
        return prove(self._body.tree, namespace, outputs if self._init is not None else (), inputs, outputs)

    def _prepare_batch_last(self, namespace: dict[str, Any]) -> None:
        """Whether views are needed at all, and the body bound to lifted `input_data` where it reads any."""
        proof = self._plan.proof
        ranks = {*_ranks(self._inputs), *_ranks(self._outputs)}
        self._batch_last = proof is not None and (proof.structural or len(ranks) > 1)
        self._apply_last = self._apply
        if proof is not None and proof.reads_input_data:
            lifted = {name: tensor.unsqueeze(-1) for name, tensor in namespace["input_data"].items()}
            self._apply_last = self._body.bind({**namespace, "input_data": lifted})

    def _choose(self) -> Mode:
        """The first mode that agrees with the loop on a small random batch; checks purity on the way."""
        generator = torch.Generator().manual_seed(0)
        input = [_sample(slot, generator) for slot in self._inputs]
        state = None if self._init is None else [_sample(slot, generator) for slot in self._outputs]
        random_before = torch.default_generator.get_state()
        try:
            wanted = self._loop(state, input, SAMPLE)
        except TaskFault as finding:
            if isinstance(finding.__cause__, Exception):
                return Mode.LOOP  # it may well run on the task's own data
            raise
        if not torch.equal(random_before, torch.default_generator.get_state()):
            raise fault("FN", self.name, "a body that draws random numbers", "a pure function", "make them a parameter")
        for mode in (Mode.ELEMENTWISE, Mode.VMAP):
            if mode is Mode.ELEMENTWISE and self._plan.proof is None:
                continue
            if _agree(self._try(mode, state, input), wanted):
                return mode
        return Mode.LOOP

    def _try(self, mode: Mode, state: list[Tensor] | None, input: list[Tensor]) -> list[Tensor] | None:
        """The results of a mode on the sample, or None when it does not work."""
        try:
            if mode is Mode.VMAP:
                return self._fitted(batched(self._apply, state, input, SAMPLE), SAMPLE)
            results = self._last_call(state, input, SAMPLE) if self._batch_last else self._apply(state, input)
            return self._fitted(results, SAMPLE)
        except Exception:
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


def _last(tensor: Tensor) -> Tensor:
    """A batch-last view of a batch-first tensor."""
    return tensor if tensor.dim() == 1 else tensor.movedim(0, -1)


def _ranks(slots: Sequence[Slot]) -> tuple[int, ...]:
    return tuple(len(element_dims(slot.field)) for slot in slots)


def _same_kinds(slots: Sequence[Slot]) -> bool:
    """Whether all floats have one dtype and all integers too."""
    floats = {slot.dtype for slot in slots if is_floating(slot.field)}
    integers = {slot.dtype for slot in slots if slot.dtype in (torch.int32, torch.int64)}
    return len(floats) <= 1 and len(integers) <= 1


def _is_number_of(value: Any, slot: Slot) -> bool:
    """Whether a Python number may stand for this field: a scalar field of a type that holds it as it is."""
    if slot.shape or type(value) not in (bool, int, float):
        return False
    if slot.dtype.is_floating_point:
        return type(value) is not bool
    return type(value) is (bool if slot.dtype is torch.bool else int)


def _sample(slot: Slot, generator: torch.Generator) -> Tensor:
    """SAMPLE random elements: floats around 1, so that most logarithms and roots exist; 0 and 1 for all others."""
    shape = (SAMPLE, *slot.shape)
    if slot.dtype.is_floating_point and type(slot.field).__name__ != "Multihot":
        return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 0.25).to(slot.dtype)
    return torch.randint(0, 2, shape, generator=generator).to(slot.dtype)


def _agree(given: list[Tensor] | None, wanted: list[Tensor]) -> bool:
    if given is None:
        return False
    bounds = [_AGREE.get(tensor.dtype, 0.0) for tensor in wanted]
    pairs = zip(given, wanted, bounds, strict=True)
    return all(torch.allclose(x, y, rtol=bound, atol=bound, equal_nan=True) for x, y, bound in pairs)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
