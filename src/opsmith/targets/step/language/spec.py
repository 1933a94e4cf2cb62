"""The records of a task file that was read: its streams and functions, and the problem behind them.

`ir` reads and writes them, `check` types programs against them. `TaskSpec.problem` is what the task asks for in any
language: `Buffer(fp32, [D])` over `[M, N]` is the same tensor as `fp32` over `[D, M, N]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.problems.problem import ArrayType, CaseSpec, Derivation, InputTensor, OutputTensors, Problem
from opsmith.targets.step.language.types import (
    DType,
    StreamType,
    array_shape,
    dims_text,
    fields_of,
    multihot_of,
    scalar_of,
)


@dataclass(frozen=True)
class TensorSpec:
    """An input stream or a parameter tensor and how its data is made."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    data_gen: str | None = None  # None: a Multihot, drawn with `min` to `max` ones per row
    min: int | None = None
    max: int | None = None

    @cached_property
    def type(self) -> StreamType:
        return StreamType(self.dtype, self.dims)

    @property
    def input_tensor(self) -> InputTensor:
        """The tensor that streams."""
        (type_,) = array_types(self.dtype, self.dims)
        return InputTensor(self.name, type_, self.data_gen, self.min, self.max)


@dataclass(frozen=True)
class FnSpec:
    """A function the hardware offers. `apply` is trusted PyTorch for one element; `init` makes it stateful."""

    name: str
    func_name: str
    apply: str
    input_dtype: DType
    output_dtype: DType
    init: tuple[float, ...] | None = None  # one start value per field of output_dtype; None: stateless

    def __hash__(self) -> int:
        return hash((self.func_name, self.apply))

    @property
    def stateful(self) -> bool:
        return self.init is not None


@dataclass(frozen=True)
class OutputSpec:
    """A wanted output: its type and one PyTorch text per field that computes the expected tensor."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    data_transform: tuple[str, ...]
    rtol: float | None = None
    atol: float | None = None

    @cached_property
    def type(self) -> StreamType:
        return StreamType(self.dtype, self.dims)

    @property
    def output_tensors(self) -> OutputTensors:
        """The tensors that are wanted, one for each field."""
        return OutputTensors(self.name, array_types(self.dtype, self.dims), self.data_transform, self.rtol, self.atol)


@dataclass(frozen=True)
class TaskSpec:
    """One task file. Equal specs are equal tasks; `extra` keeps keys that have no meaning here."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    parameters: tuple[TensorSpec, ...] = ()
    fns: tuple[FnSpec, ...] = ()
    global_code: str = ""
    test_name: str = ""
    impl: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)  # base size of every symbol, `global`'s assignments included
    shapes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # shape sets added or overridden by the file
    margins: tuple[str, ...] = ()  # PyTorch texts: distances of discrete decisions that data must keep
    cases: tuple[CaseSpec, ...] = ()  # hand-made inputs
    extra: Mapping[str, Any] = field(default_factory=dict)
    drawn_from: OriginSpec | None = None  # None: inputs are drawn by their generators

    @cached_property
    def fn_table(self) -> Mapping[str, FnSpec]:
        return {fn.func_name: fn for fn in self.fns}

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What others derive from this spec and keep with it, by a name of theirs."""
        return {}

    @cached_property
    def problem(self) -> Problem:
        """What the task asks for in any language; the fields of its functions are an interface to it."""
        return Problem(
            tuple(tensor.input_tensor for tensor in self.inputs),
            tuple(tensor.input_tensor for tensor in self.parameters),
            tuple(output.output_tensors for output in self.outputs),
            self.global_code,
            self.sizes,
            self.shapes,
            self.margins,
            self.cases if self.drawn_from is None else self.drawn_from.cases,
            tuple(
                type_ for fn in self.fns for dtype in (fn.input_dtype, fn.output_dtype) for type_ in array_types(dtype)
            ),
            drawn_from=None if self.drawn_from is None else self.drawn_from.make_derivation(self),
        )


@dataclass(frozen=True)
class OriginSpec:
    """What a task's inputs are computed from: tensors of another task, drawn as there.

    `code` assigns every input by its name; `outputs` are there only for margins that read what their texts assign.
    """

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    code: str
    outputs: tuple[OutputSpec, ...] = ()
    margins: tuple[str, ...] = ()
    cases: tuple[CaseSpec, ...] = ()

    def make_derivation(self, task: TaskSpec) -> Derivation:
        """In any language; sizes, shape sets and `global` are those of the task."""
        return Derivation(
            Problem(
                tuple(tensor.input_tensor for tensor in self.inputs),
                tuple(tensor.input_tensor for tensor in self.parameters),
                tuple(output.output_tensors for output in self.outputs),
                task.global_code,
                task.sizes,
                task.shapes,
                self.margins,
                self.cases,
            ),
            self.code,
        )


def array_types(dtype: DType, dims: tuple[Dim, ...] = ()) -> tuple[ArrayType, ...]:
    """The tensors of a stream, one for each field; without dims those of a single element."""
    return tuple(
        ArrayType(
            scalar_of(field).name,
            array_shape(field, dims),
            multihot_of(field) is not None,
            str(field),
            f"{field} {dims_text(dims)}",
        )
        for field in fields_of(dtype)
    )
