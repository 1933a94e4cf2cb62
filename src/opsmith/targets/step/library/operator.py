"""An operator: a program that is right, as a function on torch tensors.

The tensors' shapes give the sizes, the program is checked at these, and the simulator runs it: the code that judged it.
CPU tensors only; nothing is differentiated; the result shares no memory with its operands. Floats may be of the
declared types or, all of them, float64; a caller's autocast, inference mode and default device change nothing. Not for
several threads at once: a call changes torch's default dtype and changes it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType

import torch
from torch import Tensor

from opsmith.targets.step.execution.data import Bindings
from opsmith.targets.step.execution.fns import FnTable, Plans
from opsmith.targets.step.execution.namespace import namespace_of
from opsmith.targets.step.execution.precision import (
    default_dtype,
    default_of,
    is_floating,
    own_randomness,
    torch_dtype,
)
from opsmith.targets.step.execution.run import RunError, execute_batch
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.checked import Program
from opsmith.targets.step.language.dims import DimError
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec, TensorSpec
from opsmith.targets.step.language.types import fields_of
from opsmith.targets.step.library.sizes import axes_of, free_symbols, sizes_of
from opsmith.targets.trial import TaskFault

Result = Tensor | tuple[Tensor, ...]  # of one output: its tensor, or one for each field of its tuple type

SEED = 0  # of the numbers that a task's `global` draws, where it draws any


class OperatorError(ValueError):
    """What an operator was given does not fit it, or it failed on it; the message says what would fit."""


class Operator:
    """The program of one task; it is checked when it is first called."""

    def __init__(self, name: str, task: TaskSpec, program: str) -> None:
        self.name, self.task, self.program = name, task, program
        self._plans: Plans = {}

    def __call__(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int]) -> Result | tuple[Result, ...]:
        """The outputs, in the task's order; a single one as itself. Raises OperatorError.

        tensors: all inputs and parameters by name; sizes: of all free symbols, which no shape determines.
        """
        return self.on(self.bind(tensors, sizes))

    @cached_property
    def free(self) -> list[str]:
        return free_symbols(self.task)

    def bind(self, tensors: Mapping[str, Tensor], free: Mapping[str, int]) -> Bindings:
        """What a run needs. Raises OperatorError for tensors that do not fit."""
        wide = self._is_wide(tensors)
        overrides = sizes_of(self.task, {name: tensor.shape for name, tensor in tensors.items()}, self._whole(free))
        with own_randomness(SEED), _as_judged(wide):
            tensors = {name: tensor.clone() if tensor.is_inference() else tensor for name, tensor in tensors.items()}
            try:
                sizes, names = namespace_of(self.task, overrides)
            except TaskFault as fault:
                raise OperatorError(f"{self.name}: {fault}") from fault
        for entry in self._entries.values():
            self._check_shape(entry, tensors[entry.name], sizes)
        names["input_data"] = MappingProxyType(tensors)
        return Bindings(sizes, tensors, names, wide, FnTable(self.task, sizes, names, wide, self._plans))

    def on(self, bindings: Bindings) -> Result | tuple[Result, ...]:
        """The outputs on bound tensors. Raises OperatorError."""
        with _as_judged(bindings.wide):
            (made,) = execute_batch([self._graph(bindings.sizes)], Stack([bindings]))
        if isinstance(made, RunError | TaskFault):
            raise OperatorError(f"{self.name}: {made.diagnostic}") from made
        results = [_result([tensor.squeeze(0).clone() for tensor in fields]) for fields in made]
        return results[0] if len(results) == 1 else tuple(results)

    @cached_property
    def _entries(self) -> dict[str, TensorSpec]:
        return {entry.name: entry for entry in (*self.task.inputs, *self.task.parameters)}

    @cached_property
    def _checked(self) -> Program:
        return Program(self.task, self.program, check_program(self.task, self.program))

    def _graph(self, sizes: Mapping[str, int]) -> Graph:
        """The program's graph at these sizes, which may shape it."""
        report = self._checked.at(sizes)
        if report.graph is None:
            given, usual = _told(sizes), _told(self.task.sizes, {*self.task.symbols})
            head = f"{self.name}: given {given}; expected sizes that the program fits, such as the task's own: {usual}"
            raise OperatorError("\n".join([head, *map(str, report.errors)]))
        return report.graph

    def _whole(self, free: Mapping[str, int]) -> Mapping[str, int]:
        for name, size in free.items():
            if type(size) is not int or size < 1:
                raise OperatorError(f"{self.name}: {name}: given {size!r}; expected a size, an int of at least 1")
        return free

    def _is_wide(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether all floats are float64 though declared otherwise."""
        fields = {name: fields_of(entry.dtype)[0] for name, entry in self._entries.items()}
        for name, tensor in tensors.items():
            self._check_kind(name, tensor)
        floats = [tensors[name].dtype for name, field in fields.items() if is_floating(field)]
        wide = bool(floats) and all(dtype is torch.float64 for dtype in floats)
        for name, field in fields.items():
            if tensors[name].dtype is not torch_dtype(field, wide):
                expected = f"{torch_dtype(field)}{' (or float64 for all floats)' if is_floating(field) else ''}"
                raise OperatorError(f"{self.name}: {name}: given {tensors[name].dtype}; expected {expected}")
        return wide

    def _check_kind(self, name: str, tensor: object) -> None:
        if not isinstance(tensor, Tensor):
            raise OperatorError(f"{self.name}: {name}: given {type(tensor).__name__}; expected a torch tensor")
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            given = f"a {tensor.layout} tensor on {tensor.device}"
            raise OperatorError(f"{self.name}: {name}: given {given}; expected a dense tensor on the CPU")

    def _check_shape(self, entry: TensorSpec, tensor: Tensor, sizes: Mapping[str, int]) -> None:
        axes = axes_of(entry)
        if tensor.ndim != len(axes) or 0 in tensor.shape:
            expected = f"{len(axes)} ax{'is' if len(axes) == 1 else 'es'}, ({', '.join(map(str, axes))})"
            given = f"given shape {tuple(tensor.shape)}"
            raise OperatorError(f"{self.name}: {entry.name}: {given}; expected {expected}, each at least 1")
        try:
            wanted = tuple(dim.value(sizes) for dim in axes)
        except DimError as error:
            raise OperatorError(f"{self.name}: {entry.name}: given shape {tuple(tensor.shape)}; {error}") from None
        if tuple(tensor.shape) != wanted:
            known = _told(sizes, set().union(*(dim.symbols for dim in axes)))
            expected = f"({', '.join(map(str, axes))}) = {wanted}" + (f", with {known}" if known else "")
            raise OperatorError(f"{self.name}: {entry.name}: given shape {tuple(tensor.shape)}; expected {expected}")


@contextmanager
def _as_judged(wide: bool) -> Iterator[None]:
    """What surrounded the author's code in a verdict: default dtype and device, no autocast, plain tensors."""
    with (
        default_dtype(default_of(wide)),
        torch.device("cpu"),
        torch.autocast("cpu", enabled=False),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        yield


def _told(sizes: Mapping[str, int], names: Set[str] | None = None) -> str:
    return ", ".join(f"{name} = {sizes[name]}" for name in sorted(sizes if names is None else names))


def _result(fields: list[Tensor]) -> Result:
    return fields[0] if len(fields) == 1 else tuple(fields)
