"""The C function that a problem asks for: its prototype, and the words that say it in a prompt.

Arguments stand in one order: inputs and parameters, outputs, dims as `int64_t` in the order of the file, scalars. All
tensors are contiguous and row-major. Names are the problem's own where C takes them, else with `_` behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opsmith.problems.dims import Dim
from opsmith.problems.problem import ArrayType, Problem

FUNCTION = "kernel"

_C_TYPES = {
    "fp32": "float",
    "fp64": "double",
    "fp16": "_Float16",
    "bf16": "uint16_t",
    "int8": "int8_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}
_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
"""
_MACROS = "bool true false NULL NAN INFINITY I EOF errno linux unix main bf16_to_float float_to_bf16"
_RESERVED = frozenset(_KEYWORDS.split()) | frozenset(_MACROS.split())
_BF16 = """
static inline float bf16_to_float(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float result;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}
static inline uint16_t float_to_bf16(float value) {  /* to the nearest, ties to even */
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
"""


@dataclass(frozen=True)
class Argument:
    """One argument of the function: its declaration in C and what it is, in words."""

    name: str
    c_type: str  # `const float *restrict`, `int64_t`
    meaning: str  # `input x: fp32 [M, N]`

    @property
    def declaration(self) -> str:
        return f"{self.c_type} {self.name}"


@dataclass(frozen=True)
class Signature:
    """The function that a candidate defines."""

    arguments: tuple[Argument, ...]
    uses_bf16: bool

    @property
    def prototype(self) -> str:
        """`void kernel(const float *restrict x, ...);`, on one line."""
        return f"void {FUNCTION}({', '.join(argument.declaration for argument in self.arguments)});"

    @property
    def header(self) -> str:
        """What precedes every candidate: a definition that disagrees with it is refused by the compiler."""
        return f"#include <stdint.h>\n{_BF16 if self.uses_bf16 else ''}{self.prototype}\n"

    def describe(self) -> str:
        """The prototype and a line for each argument, as a prompt shows them."""
        lines = [f"  {argument.name}: {argument.meaning}" for argument in self.arguments]
        helpers = [
            "bf16 numbers are given as uint16_t; these helpers are defined before your program:",
            "  float bf16_to_float(uint16_t); uint16_t float_to_bf16(float);  // to the nearest, ties to even",
        ]
        tensors = "Tensors are contiguous and row-major, the last axis fastest, and never overlap."
        return "\n".join([self.prototype, *lines, tensors, *(helpers if self.uses_bf16 else [])])


def make_signature(problem: Problem) -> Signature:
    """The function that computes a problem."""
    names = _NameChooser()
    arguments = [
        *_list_inputs(problem, names),
        *_list_outputs(problem, names),
        *(Argument(names.choose(dim), "int64_t", f"the size {dim}") for dim in list_dims(problem)),
        *_list_scalars(problem, names),
    ]
    return Signature(tuple(arguments), any(type_.dtype == "bf16" for type_ in problem.types))


def list_dims(problem: Problem) -> list[str]:
    """The symbols that are given as sizes, in the order of the file: in which it states them or, where it states none
    itself, in which the shapes of its tensors name them, outermost axis first."""
    if problem.reference:
        return list(problem.base_sizes)
    symbols = (symbol for type_ in problem.types for dim in type_.shape for symbol in _list_symbols(dim))
    return list(dict.fromkeys(symbols))


def _list_symbols(dim: Dim) -> list[str]:
    """In the order in which it is written."""
    return [name for name in re.findall(r"\w+", str(dim)) if name in dim.symbols]


def _list_inputs(problem: Problem, names: _NameChooser) -> Iterator[Argument]:
    for tensor in problem.tensors:
        c_type = f"const {_C_TYPES[tensor.type.dtype]} *restrict"
        yield Argument(names.choose(tensor.name), c_type, f"input {tensor.name}: {_describe_type(tensor.type)}")


def _list_outputs(problem: Problem, names: _NameChooser) -> Iterator[Argument]:
    for output in problem.outputs:
        for name, type_ in zip(output.tensor_names, output.types, strict=True):
            c_type = f"{_C_TYPES[type_.dtype]} *restrict"
            yield Argument(names.choose(name), c_type, f"output {name}: {_describe_type(type_)}")


def _list_scalars(problem: Problem, names: _NameChooser) -> Iterator[Argument]:
    for name, value in problem.scalars.items():
        c_type = "int64_t" if isinstance(value, int) else "double"
        yield Argument(names.choose(name), c_type, f"the number {name} = {value}")


def _describe_type(type_: ArrayType) -> str:
    shape = ", ".join(map(str, type_.shape))
    words = ", each row of zeros and ones" if type_.is_multihot else ""
    return f"{type_.dtype} [{shape}]{words}" if shape else f"{type_.dtype}, one number"


class _NameChooser:
    """Gives every argument a name of its own that C takes."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = {FUNCTION, *_RESERVED, *used}

    def choose(self, name: str) -> str:
        chosen = re.sub(r"\W", "_", name, flags=re.ASCII)
        chosen = f"x{chosen}" if re.match(r"[\d_]", chosen) else chosen
        while chosen in self._used or chosen in _C_TYPES.values():
            chosen += "_"
        self._used.add(chosen)
        return chosen
