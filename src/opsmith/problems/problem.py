"""The record of a problem: what an operator computes, in no language.

Shapes are symbolic and logical: the outermost axis first, whatever a target makes of it. A target reads a task file
into its own records and gives this one (`TaskSpec.problem` of STeP).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import FLOATS, NARROW_FLOATS

ATTEMPTS = 200  # draws before a margin is given up
DEFAULT_SIZES: Mapping[str, int] = {"M": 5, "N": 7, "K": 9, "D": 16}
NO_LICENCE = "not stated"
DECLARED = "declared"  # in place of an expression: the data that the input declares


class Distribution(StrEnum):
    """A kind of data beside the one that a problem declares."""

    SCALED = "scaled"  # every tensor far larger or smaller
    SHIFTED = "shifted"  # a row far from 0
    NEGATIVE = "negative"  # nothing above 0, maybe far below
    CONSTANT = "constant"  # one number a row, or everywhere
    SPARSE = "sparse"  # mostly zeros of both signs
    SORTED = "sorted"  # rising or falling along the last axis; runs of neighbours
    PERIODIC = "periodic"  # the largest numbers at places of one remainder
    EXTREME = "extreme"  # a few numbers far larger than all others; first and last indices
    FEW = "few"  # few different numbers


@dataclass(frozen=True)
class ArrayType:
    """The dtype and shape of a tensor. `kind` and `label` are for messages: a target's own words for the type of one
    element and of the whole tensor; the dtype, and the dtype with the shape, unless given."""

    dtype: str  # one of dtypes.DTYPES
    shape: tuple[Dim, ...]  # outermost axis first
    is_multihot: bool = False  # rows of zeros and ones along the last axis
    kind: str = field(default="", compare=False)
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or self.dtype)
        object.__setattr__(self, "label", self.label or f"{self.dtype} [{', '.join(map(str, self.shape))}]")

    @property
    def is_floating(self) -> bool:
        return self.dtype in FLOATS

    def shape_at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The number of entries of every axis. Raises DimError where a dim has no whole value."""
        return tuple(dim.value(sizes) for dim in self.shape)


@dataclass(frozen=True)
class InputTensor:
    """An input or a parameter and how its data is drawn: by a generator, or by an expression in its place."""

    name: str
    type: ArrayType
    data_gen: str | None = None  # None: a Multihot, drawn with `min` to `max` ones per row
    min: int | None = None
    max: int | None = None
    expression: str = ""  # Python on torch, dims, scalars and the inputs above it
    distributions: tuple[tuple[str, str], ...] = ()  # (name, expression): its data under a distribution


@dataclass(frozen=True)
class OutputTensors:
    """A wanted output: one or more tensors, each with the PyTorch text that computes what is expected, unless the
    problem's `reference` computes all outputs."""

    name: str
    types: tuple[ArrayType, ...]
    references: tuple[str, ...] = ()  # one for each type, or none
    rtol: float | None = None  # None with atol None: the tolerance of `tolerance`
    atol: float | None = None

    @property
    def tensor_names(self) -> tuple[str, ...]:
        """Its tensors' names in languages without fields: `S0`, or `S0_0` and `S0_1`."""
        several = len(self.types) > 1
        return tuple(f"{self.name}_{number}" if several else self.name for number in range(len(self.types)))

    @property
    def kind(self) -> str:
        """The type of one element, for messages."""
        kinds = [type_.kind for type_ in self.types]
        return kinds[0] if len(kinds) == 1 else f"[{', '.join(kinds)}]"


@dataclass(frozen=True)
class CaseSpec:
    """A hand-made input: a text that changes a draw and ends in a property that must hold."""

    text: str
    shape: str = ""  # one of the file's shape sets; "": the base shape


@dataclass(frozen=True)
class Provenance:
    """The foreign file that a problem was imported from. Exports need it; models and verdicts never see it."""

    format: str  # kernelbench, flashinfer
    file: str  # relative to the imported folder
    sha256: str  # of that file
    licence: str = NO_LICENCE  # as its header, or a LICENSE file beside or above it, says
    text: str = ""  # of the file; flashinfer: the definition's JSON
    arguments: tuple[str, ...] = ()  # of the source's function, in order: names of inputs and scalars
    weights: Mapping[str, str] = field(default_factory=dict)  # input -> key of the module's state; several: packed
    sizes: Mapping[str, int] = field(default_factory=dict)  # the source's own, by dim, where the base sizes are smaller


@dataclass(frozen=True)
class Derivation:
    """Where a problem's inputs come from: what `code` makes of the data of another problem, drawn as for that one.

    `code` is PyTorch statements that see that problem's tensors as `input_data` and assign every input by its name;
    parameters are passed through by name (`generators.compute_inputs`). Of `problem`, inputs, parameters, margins and
    cases count; its outputs are there only for margins that read what their references assign.
    """

    problem: Problem
    code: str


@dataclass(frozen=True)
class Problem:
    """What an operator computes. `interface` are types that a target adds (STeP: the fields of its functions): they
    belong to no tensor, but their dims must be whole, and their floats count as declared ones.

    With a `reference`, a Python function for all outputs, the problem states the size of every dim itself: there are no
    built-in sizes and shape sets, and authors' texts, `global_code` among them (`setup` of a problem file), see dims as
    whole numbers.
    """

    inputs: tuple[InputTensor, ...]
    parameters: tuple[InputTensor, ...]
    outputs: tuple[OutputTensors, ...]
    global_code: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)  # base size of every symbol
    shapes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # shape sets added or overridden by the file
    margins: tuple[str, ...] = ()  # PyTorch texts: distances of discrete decisions that data must keep
    cases: tuple[CaseSpec, ...] = ()  # hand-made inputs
    interface: tuple[ArrayType, ...] = ()
    reference: str = ""
    scalars: Mapping[str, int | float] = field(default_factory=dict)  # arguments of `reference` beside the inputs
    fixed: tuple[str, ...] = ()  # scalars that hidden draws leave as they are (`scalar_draws`)
    accumulation: str = ""  # the dtype to sum in where a tensor is narrower; "": fp32
    bench: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # shape sets that are timed
    constraints: tuple[str, ...] = ()  # comparisons of dims that all sizes keep (`constraints`)
    source: Provenance | None = None  # of an imported problem
    ties: str = ""  # which of equal numbers a decision takes; "": not stated, so that no data is tried where it shows
    drawn_from: Derivation | None = None  # None: inputs and parameters are drawn by their generators

    @property
    def tensors(self) -> tuple[InputTensor, ...]:
        """Inputs and parameters, in the order in which they are drawn."""
        return (*self.inputs, *self.parameters)

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """Those of all tensors: inputs, parameters, outputs."""
        outputs = (type_ for output in self.outputs for type_ in output.types)
        return (*(tensor.type for tensor in self.tensors), *outputs)

    @property
    def base_sizes(self) -> dict[str, int]:
        """The sizes that hold unless a shape set says otherwise."""
        return dict(self.sizes) if self.reference else {**DEFAULT_SIZES, **self.sizes}

    @property
    def dims(self) -> Iterator[Dim]:
        """Every dim that must have a whole value."""
        return (dim for type_ in (*self.types, *self.interface, *self.origin_types) for dim in type_.shape)

    @property
    def origin_types(self) -> tuple[ArrayType, ...]:
        """Those of the tensors that the data is computed from; (): it is drawn as it is."""
        return () if self.drawn_from is None else tuple(tensor.type for tensor in self.drawn_from.problem.tensors)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Every symbol that occurs in a dim, and all that a problem with a `reference` states."""
        stated = self.sizes if self.reference else ()
        return frozenset((*stated, *(name for dim in self.dims for name in dim.symbols)))

    def choose_working_dtype(self, type_: ArrayType) -> str:
        """The dtype that a tensor of this type is summed in."""
        return self.accumulation or ("fp32" if type_.dtype in NARROW_FLOATS else type_.dtype)

    def select_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Those of the problem's own symbols, without built-in ones that it does not use."""
        return {name: size for name, size in sizes.items() if name in self.symbols}

    def without_interface(self) -> Problem:
        """The problem alone, in plain words: what the language that states it adds binds no other."""
        inputs, parameters = (
            tuple(replace(tensor, type=replace(tensor.type, kind="", label="")) for tensor in tensors)
            for tensors in (self.inputs, self.parameters)
        )
        outputs = (
            replace(output, types=tuple(replace(type_, kind="", label="") for type_ in output.types))
            for output in self.outputs
        )
        return replace(self, inputs=inputs, parameters=parameters, outputs=tuple(outputs), interface=())

    def count_numbers(self, sizes: Mapping[str, int]) -> int:
        """How many numbers all tensors hold together. Raises DimError where a dim has no whole value."""
        return sum(math.prod(type_.shape_at(sizes)) for type_ in (*self.types, *self.origin_types))

    def count_points(self, sizes: Mapping[str, int]) -> int:
        """What a loop nest over all symbols would visit."""
        return math.prod(sizes[name] for name in self.symbols)

    @property
    def has_narrow_floats(self) -> bool:
        """Whether the declared precision differs from float64 anywhere; else float64 says it all."""
        return any(type_.is_floating and type_.dtype != "fp64" for type_ in (*self.types, *self.interface))
