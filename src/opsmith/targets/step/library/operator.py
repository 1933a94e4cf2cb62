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

import torch
from torch import Tensor

from opsmith.problems.bindings import bind_tensors
from opsmith.problems.dims import DimError
from opsmith.problems.namespace import run_global
from opsmith.problems.precision import default_dtype, default_of, own_randomness
from opsmith.targets.operator_error import OperatorError
from opsmith.targets.step.execution.bound import BoundDraw, bind_fns
from opsmith.targets.step.execution.fns import Plans
from opsmith.targets.step.execution.precision import is_floating, torch_dtype
from opsmith.targets.step.execution.run import RunError, execute_batch
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.language.check import Program, check_program
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec, TensorSpec
from opsmith.targets.step.language.types import fields_of
from opsmith.targets.step.library.sizes import axes_of, free_symbols, sizes_of
from opsmith.targets.trial import TaskFault

Result = Tensor | tuple[Tensor, ...]  # of one output: its tensor, or one for each field of its tuple type

SEED = 0  # of the numbers that a task's `global` draws, where it draws any


class Operator:
    """The program of one task; it is checked when it is first called."""

    def __init__(self, name: str, task: TaskSpec, program: str) -> None:
        self.name, self.task, self.program = name, task, program
        self._plans: Plans = {}

    def __call__(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int]) -> Result | tuple[Result, ...]:
        """The outputs, in the task's order; a single one as itself. Raises OperatorError.

        tensors: all inputs and parameters by name; sizes: of all free symbols, which no shape determines.
        """
        return self.run_on(self.bind_tensors(tensors, sizes))

    @cached_property
    def free_names(self) -> list[str]:
        return free_symbols(self.task)

    def bind_tensors(self, tensors: Mapping[str, Tensor], free: Mapping[str, int]) -> BoundDraw:
        """What a run needs. Raises OperatorError for tensors that do not fit."""
        wide = self._is_wide(tensors)
        overrides = sizes_of(
            self.task, {name: tensor.shape for name, tensor in tensors.items()}, self._check_sizes(free)
        )
        with own_randomness(SEED), _judging_context(wide):
            tensors = {name: tensor.clone() if tensor.is_inference() else tensor for name, tensor in tensors.items()}
            try:
                sizes, names = run_global(self.task.problem, overrides)
            except TaskFault as fault:
                raise OperatorError(f"{self.name}: {fault}") from fault
        for entry in self._tensor_specs.values():
            self._check_shape(entry, tensors[entry.name], sizes)
        return bind_fns(self.task, bind_tensors(sizes, tensors, names, wide), self._plans)

    def run_on(self, bindings: BoundDraw) -> Result | tuple[Result, ...]:
        """The outputs on bound tensors. Raises OperatorError."""
        with _judging_context(bindings.wide):
            (outputs,) = execute_batch([self.graph_at(bindings.sizes)], Stack([bindings]))
        if isinstance(outputs, RunError | TaskFault):
            raise OperatorError(f"{self.name}: {outputs.diagnostic}") from outputs
        results = [_join_fields([tensor.squeeze(0).clone() for tensor in fields]) for fields in outputs]
        return results[0] if len(results) == 1 else tuple(results)

    @cached_property
    def _tensor_specs(self) -> dict[str, TensorSpec]:
        return {entry.name: entry for entry in (*self.task.inputs, *self.task.parameters)}

    @cached_property
    def _checked_program(self) -> Program:
        return Program(self.task, self.program, check_program(self.task, self.program))

    def graph_at(self, sizes: Mapping[str, int]) -> Graph:
        """The program's graph at these sizes, which may shape it."""
        report = self._checked_program.report_at(sizes)
        if report.graph is None:
            actual, usual = _list_sizes(sizes), _list_sizes(self.task.sizes, {*self.task.problem.symbols})
            head = f"{self.name}: given {actual}; expected sizes that the program fits, such as the task's own: {usual}"
            raise OperatorError("\n".join([head, *map(str, report.errors)]))
        return report.graph

    def _check_sizes(self, free: Mapping[str, int]) -> Mapping[str, int]:
        for name, size in free.items():
            if type(size) is not int or size < 1:
                raise OperatorError(f"{self.name}: {name}: given {size!r}; expected a size, an int of at least 1")
        return free

    def _is_wide(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether all floats are float64 though declared otherwise."""
        fields = {name: fields_of(entry.dtype)[0] for name, entry in self._tensor_specs.items()}
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
            description = f"a {tensor.layout} tensor on {tensor.device}"
            raise OperatorError(f"{self.name}: {name}: given {description}; expected a dense tensor on the CPU")

    def _check_shape(self, entry: TensorSpec, tensor: Tensor, sizes: Mapping[str, int]) -> None:
        axes = axes_of(entry)
        if tensor.ndim != len(axes) or 0 in tensor.shape:
            expected = f"{len(axes)} ax{'is' if len(axes) == 1 else 'es'}, ({', '.join(map(str, axes))})"
            description = f"given shape {tuple(tensor.shape)}"
            raise OperatorError(f"{self.name}: {entry.name}: {description}; expected {expected}, each at least 1")
        try:
            expected_shape = tuple(dim.value(sizes) for dim in axes)
        except DimError as error:
            raise OperatorError(f"{self.name}: {entry.name}: given shape {tuple(tensor.shape)}; {error}") from None
        if tuple(tensor.shape) != expected_shape:
            size_text = _list_sizes(sizes, set().union(*(dim.symbols for dim in axes)))
            expected = f"({', '.join(map(str, axes))}) = {expected_shape}" + (
                f", with {size_text}" if size_text else ""
            )
            raise OperatorError(f"{self.name}: {entry.name}: given shape {tuple(tensor.shape)}; expected {expected}")


@contextmanager
def _judging_context(wide: bool) -> Iterator[None]:
    """What surrounded the author's code in a verdict: default dtype and device, no autocast, plain tensors."""
    with (
        default_dtype(default_of(wide)),
        torch.device("cpu"),
        torch.autocast("cpu", enabled=False),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        yield


def _list_sizes(sizes: Mapping[str, int], names: Set[str] | None = None) -> str:
    return ", ".join(f"{name} = {sizes[name]}" for name in sorted(sizes if names is None else names))


def _join_fields(fields: list[Tensor]) -> Result:
    return fields[0] if len(fields) == 1 else tuple(fields)
