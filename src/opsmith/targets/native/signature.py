"""The C function that a problem asks for: its prototype, and the words that say it in a prompt.

Arguments stand in one order: inputs and parameters, outputs, dims as `int64_t` in the order of the file, scalars. All
tensors are contiguous and row-major. Names are the problem's own where C takes them, else with `_` behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import TYPES
from opsmith.problems.problem import ArrayType, Problem

FUNCTION = "kernel"

_C_TYPES = frozenset(row.c for row in TYPES.values())
_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
"""
_MACROS = """
bool true false NULL NAN INFINITY I EOF errno linux unix main bf16_to_float float_to_bf16 fp8_e4m3_to_float
float_to_fp8_e4m3 fp8_e5m2_to_float float_to_fp8_e5m2 int4_low int4_high int4_pair
"""
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
_FP8 = """
static inline float NAME_to_float(uint8_t code) {  /* exact */
  uint32_t size = code & 0x7fu, is_small = size < CODES, least = -is_small & LEAST;
  uint32_t bits = (size << SHIFT) + OFFSET + (is_small << 23) + (size > MOST ? OFFSET : 0u);
  float value, small;
  __builtin_memcpy(&value, &bits, sizeof value);
  __builtin_memcpy(&small, &least, sizeof small);
  value -= small;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits |= (uint32_t)(code & 0x80u) << 24;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
static inline uint8_t float_to_NAME(float value) {  /* to the nearest, ties to even; what is larger as the largest */
  uint32_t bits, small;
  __builtin_memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu, nan = size > 0x7f800000u ? 0x7fu : 0u;
  size = size > LARGEST ? LARGEST : size;
  __builtin_memcpy(&value, &size, sizeof value);
  float shifted = value + SCALE;  /* whose last place is the least number */
  __builtin_memcpy(&small, &shifted, sizeof small);
  uint32_t large = (size - OFFSET + HALF + (size >> SHIFT & 1u)) >> SHIFT;
  uint32_t is_small = -(uint32_t)(size < LEAST);
  return (uint8_t)(sign | nan | (small & 0x7fu & is_small) | (large & ~is_small));
}
"""

_PLACES = {"fp8_e4m3": (3, 7, 0x7E), "fp8_e5m2": (2, 15, 0x7B)}  # bits of mantissa, bias, code of the largest number


def fill_places(text: str, name: str) -> str:
    """A text with what belongs to a float of one byte in place of NAME, CODES, SHIFT, MOST ..."""
    bits, bias, most = _PLACES[name]
    shift, offset = 23 - bits, 127 - bias << 23
    numbers = {"MOST": most, "OFFSET": offset, "LEAST": 128 - bias << 23, "HALF": (1 << shift - 1) - 1}
    numbers["LARGEST"] = (most << shift) + offset
    words = {word: f"0x{number:x}u" for word, number in numbers.items()}
    words |= {"NAME": name, "CODES": f"{1 << bits}u", "SHIFT": f"{shift}u", "SCALE": f"0x1p{24 - bias - bits}f"}
    words["UNIT"] = f"0x1p{1 - bias - bits}f"
    return re.sub("|".join(words), lambda match: words[match[0]], text)


_INT4 = """
static inline int int4_low(uint8_t pair) { return (int8_t)(uint8_t)(pair << 4) >> 4; }  /* -8 to 7 */
static inline int int4_high(uint8_t pair) { return (int8_t)pair >> 4; }
static inline uint8_t int4_pair(int low, int high) { return (uint8_t)((low & 15) | (high & 15) << 4); }
"""
_HELPERS = {  # by dtype: what is defined before a program
    "bf16": _BF16,
    **{name: fill_places(_FP8, name) for name in _PLACES},
    "int4x2": _INT4,
}


def describe_c_type(dtype: str) -> str:
    """What C calls a type, with the functions that are defined before a program for it, in one line."""
    functions = re.findall(r"static inline (\w+ \w+\(.*?\))", _HELPERS.get(dtype, ""))
    return "; ".join([TYPES[dtype].c, *(f"defined before your program: {', '.join(functions)}" for _ in functions[:1])])


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
    dtypes: tuple[str, ...]  # of all arrays, each once

    @property
    def prototype(self) -> str:
        """`void kernel(const float *restrict x, ...);`, on one line."""
        return f"void {FUNCTION}({', '.join(argument.declaration for argument in self.arguments)});"

    @property
    def header(self) -> str:
        """What precedes every candidate: a definition that disagrees with it is refused by the compiler."""
        helpers = "".join(_HELPERS.get(dtype, "") for dtype in self.dtypes)
        return f"#include <stdint.h>\n{helpers}{self.prototype}\n"

    def list_arguments(self) -> list[str]:
        """A line for each."""
        return [f"{argument.name}: {argument.meaning}" for argument in self.arguments]


def make_signature(problem: Problem) -> Signature:
    """The function that computes a problem."""
    names = _NameChooser()
    arguments = [
        *_list_inputs(problem, names),
        *_list_outputs(problem, names),
        *(Argument(names.choose(dim), "int64_t", f"the size {dim}") for dim in list_dims(problem)),
        *_list_scalars(problem, names),
    ]
    return Signature(tuple(arguments), tuple(dict.fromkeys(type_.dtype for type_ in problem.types)))


def write_prototype(problem: Problem) -> str:
    """The function's declaration in C, as a line."""
    return make_signature(problem).prototype + "\n"


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
        c_type = f"const {TYPES[tensor.type.dtype].c} *restrict"
        yield Argument(names.choose(tensor.name), c_type, f"input {tensor.name}: {_describe_type(tensor.type)}")


def _list_outputs(problem: Problem, names: _NameChooser) -> Iterator[Argument]:
    for output in problem.outputs:
        for name, type_ in zip(output.tensor_names, output.types, strict=True):
            c_type = f"{TYPES[type_.dtype].c} *restrict"
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
        while chosen in self._used or chosen in _C_TYPES:
            chosen += "_"
        self._used.add(chosen)
        return chosen
