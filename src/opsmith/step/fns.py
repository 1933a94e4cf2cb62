"""Functions as classes: `getInit` and `apply` for one element, as in the paper's figure 19."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from opsmith.records import Diagnostic
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.fns import BatchedFn
from opsmith.targets.step.execution.forms import Axes
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.execution.slots import slots_of
from opsmith.targets.step.language.spec import FnSpec as CoreFn
from opsmith.targets.step.language.types import DType, element_shape, fields_of


class OfferedFn:
    """A function that the hardware offers; subclass it.

    `apply(self, input)`, or `apply(self, state, input)` beside a `getInit`, returns one value per field of `output`.
    `getInit` gives one start value per field: a number, or a tensor of the field's shape.

    >>> from opsmith.step import Scalar
    >>> class Sum(OfferedFn):
    ...     def getInit(self):
    ...         return [0]
    ...     def apply(self, state, input):
    ...         return [state[0] + input[0]]
    >>> Sum("fn_sum", Scalar("fp32"), Scalar("fp32"))
    fn_sum: fp32 -> fp32, stateful
    """

    def __init__(self, name: str, input: DType, output: DType) -> None:
        self.name, self.input, self.output = name, input, output

    def getInit(self) -> Sequence[Any]:
        raise NotImplementedError(f"{self.name} is stateless")

    @property
    def stateful(self) -> bool:
        return type(self).getInit is not OfferedFn.getInit

    def call(self, state: list[Tensor] | None, input: list[Tensor]) -> Any:
        """One element's result."""
        apply: Any = getattr(self, "apply", None)
        if apply is None:
            raise TypeError(f"{self.name} has no method `apply`")
        return apply(state, input) if self.stateful else apply(input)

    def core_fn(self, key: str) -> CoreFn:
        """This function as the checker knows it, under the name `key`."""
        init = tuple(0.0 for _ in fields_of(self.output)) if self.stateful else None
        return CoreFn(type(self).__name__, key, "return call(state, input)\n", self.input, self.output, init)

    def __repr__(self) -> str:
        return f"{self.name}: {self.input} -> {self.output}{', stateful' if self.stateful else ''}"


class EagerFn(BatchedFn):
    """A `Fn` at one set of sizes, applied to batches and checked as the simulator does it; made on first use."""

    reduction = None  # its body is not there to be read

    def __init__(self, source: OfferedFn, sizes: Mapping[str, int], key: str) -> None:
        self.source, self.sizes, self.fn = source, dict(sizes), source.core_fn(key)
        self.outputs = slots_of(self.fn.output_dtype, sizes, False)
        self._is_ready = False

    def _prepare_call(self) -> None:
        if not self._is_ready:
            namespace = {"call": self.source.call, "input_data": {}}
            super().__init__(self.fn, self.sizes, namespace, False, {})
            self._is_ready = True

    def __call__(self, state: list[Tensor] | None, input: list[Tensor], axes: Axes) -> list[Tensor]:
        self._prepare_call()
        return super().__call__(state, input, axes)

    def init_state(self, axes: Axes) -> list[Tensor]:
        """The start state of a batch, from `getInit`. Raises TaskFault."""
        values, fields = list(self.source.getInit()), fields_of(self.source.output)
        if len(values) != len(fields):
            raise self._refuse_init(
                f"{len(values)} start values", f"{len(fields)}, one per field of {self.source.output}"
            )
        states = []
        for value, field in zip(values, fields, strict=True):
            start = torch.as_tensor(value).to(torch_dtype(field))
            shape = element_shape(field, self.sizes)
            if tuple(start.shape) not in ((), shape):
                given = f"a start value of shape {tuple(start.shape)}"
                raise self._refuse_init(given, f"a number, or shape {shape} for {field}")
            states.append(start.expand(*axes, *shape).clone())
        return states

    def _refuse_init(self, given: str, expected: str) -> TaskFault:
        return TaskFault(Diagnostic("FN", f"{self.source.name}.getInit", given, expected))
