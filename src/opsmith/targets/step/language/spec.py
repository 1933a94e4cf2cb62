"""The records of a task in structural IR: what does a task file say, once read? (reference section 8.1)

`ir` reads and writes them, `check` types programs against them, `data` makes tensors from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.types import DType, StreamType, symbols_of

DEFAULT_SIZES: Mapping[str, int] = {"M": 5, "N": 7, "K": 9, "D": 16}


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


@dataclass(frozen=True)
class Fn:
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


@dataclass(frozen=True)
class CaseSpec:
    """A hand-made input: a text that changes a draw and ends in a property that must hold."""

    text: str
    shape: str = ""  # one of the file's shape sets; "": the base shape


@dataclass(frozen=True)
class TaskSpec:
    """One task file. Equal specs are equal tasks; `extra` keeps keys that have no meaning here."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]
    parameters: tuple[TensorSpec, ...] = ()
    fns: tuple[Fn, ...] = ()
    global_code: str = ""
    test_name: str = ""
    impl: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)  # base size of every symbol, `global`'s assignments included
    shapes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # shape sets added or overridden by the file
    margins: tuple[str, ...] = ()  # PyTorch texts: distances of discrete decisions that data must keep
    cases: tuple[CaseSpec, ...] = ()  # hand-made inputs
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def fn_table(self) -> Mapping[str, Fn]:
        return {fn.func_name: fn for fn in self.fns}

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What others derive from this spec and keep with it, by a name of theirs."""
        return {}

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Every symbol that occurs in a dim or a type of the file."""
        found: set[str] = set()
        streams = [entry.type for entry in (*self.inputs, *self.parameters)] + [output.type for output in self.outputs]
        for stream in streams:
            found |= symbols_of(stream.dtype)
            found.update(name for dim in stream.dims for name in dim.symbols)
        for fn in self.fns:
            found |= symbols_of(fn.input_dtype) | symbols_of(fn.output_dtype)
        return frozenset(found)
