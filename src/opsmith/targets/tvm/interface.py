"""How a problem is asked for in TVMScript: the head of the function, and the C around what TVM makes of it.

TVM's function takes arrays as DLTensors. A unit of ours defines `kernel` as it is defined in C, calls that function,
and gives it what it asks its runtime for: workspaces, threads, a place for errors. So a build is called, judged,
timed and taken away as one of C is, without TVM.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Mapping

from opsmith.problems.problem import ArrayType, Problem
from opsmith.records import Diagnostic
from opsmith.targets.native.signature import Argument, make_signature
from opsmith.targets.native.source_checks import KIND
from opsmith.targets.tvm.source import DECORATOR, read_function

_WORDS = {  # what TVM calls a type, and DLPack's code and bits of it
    "fp32": ("float32", 2, 32),
    "fp16": ("float16", 2, 16),
    "bf16": ("bfloat16", 4, 16),
    "fp64": ("float64", 2, 64),
    "int8": ("int8", 0, 8),
    "int16": ("int16", 0, 16),
    "int32": ("int32", 0, 32),
    "int64": ("int64", 0, 64),
}
_BYTE = ("uint8", 1, 8)  # bool, and types that TVM's processors do not compute with
_ARGUMENT_TYPES = {"int64_t": ("T.int64", 1, "whole"), "double": ("T.float64", 3, "real")}  # and of the FFI
_TENSOR = 7  # of the FFI: a DLTensor's address

_UNIT = """#include <stdlib.h>
typedef struct { int32_t type, zero; union { int64_t whole; double real; void *place; } value; } opsmith_argument;
typedef struct {
  const void *data;
  int32_t device, device_number, axes;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} opsmith_tensor;
typedef struct { void *sync; int32_t tasks; } opsmith_team_of;
typedef int (*opsmith_body)(int, opsmith_team_of *, void *);
#define OPSMITH_HIDDEN __attribute__((visibility("hidden")))
OPSMITH_HIDDEN extern int32_t __tvm_ffi_kernel(void *, const opsmith_argument *, int32_t, opsmith_argument *);
__attribute__((used))
OPSMITH_HIDDEN void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  (void)kind; (void)parts; (void)count;
}
OPSMITH_HIDDEN __attribute__((weak)) void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
OPSMITH_HIDDEN __attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void *);
OPSMITH_HIDDEN __attribute__((weak)) int (*__TVMBackendParallelLaunch)(opsmith_body, void *, int);
static void *opsmith_allocate(int device, int number, uint64_t size, int code, int bits) {
  void *place;
  (void)device; (void)number; (void)code; (void)bits;
  return posix_memalign(&place, 64, size ? size : 64) ? NULL : place;
}
static int opsmith_release(int device, int number, void *place) {
  (void)device; (void)number;
  free(place);
  return 0;
}
LAUNCH
static __attribute__((noinline)) void opsmith_soil(void) {
  char left[1 << 14];  /* small arrays of TVM's lie there next: they begin with what a build makes of unset locals */
  __asm__ volatile("" : : "r"(left) : "memory");
}
static void opsmith_call(const opsmith_argument *arguments, int count) {
  opsmith_argument result = {0};
  __TVMBackendAllocWorkspace = opsmith_allocate;
  __TVMBackendFreeWorkspace = opsmith_release;
  __TVMBackendParallelLaunch = opsmith_launch;
  opsmith_soil();
  if (__tvm_ffi_kernel(NULL, arguments, count, &result)) abort();  /* no memory for a workspace */
}
"""
_POINTER = re.compile(r"OPSMITH_HIDDEN __attribute__\(\(weak\)\) (.*\(\*(\w+)\).*;)")
_FEATURES = {"x86-64-v4": "__AVX512F__", "x86-64-v3": "__AVX2__", "x86-64-v2": "__SSE4_2__"}
_LAUNCH = """#ifdef _OPENMP
extern int omp_get_thread_num(void), omp_get_num_threads(void);
#endif
static int opsmith_launch(opsmith_body body, void *data, int asked) {
  int failed = 0;
  (void)asked;
#ifdef _OPENMP
#pragma omp parallel reduction(| : failed)
  {
    opsmith_team_of team = {NULL, omp_get_num_threads()};
    failed |= body(omp_get_thread_num(), &team, data);
  }
#else
  opsmith_team_of team = {NULL, 1};
  failed = body(0, &team, data);
#endif
  return failed;
}"""


def name_type(dtype: str) -> str:
    """What TVM calls a type of the problem."""
    return _WORDS.get(dtype, _BYTE)[0]


def write_head(problem: Problem) -> str:
    """The decorator, the def and the buffers: what every program for the problem begins with."""
    names = _choose_names(problem)
    symbols = {symbol: names[name] for symbol, name in _choose_symbols(problem).items()}
    arguments, types = make_signature(problem).arguments, _list_types(problem)
    handles = [f"{names[argument.name]}_handle: T.handle" for argument in arguments[: len(types)]]
    numbers = [f"{names[each.name]}: {_ARGUMENT_TYPES[each.c_type][0]}" for each in arguments[len(types) :]]
    rows = [DECORATOR, f"def kernel({', '.join([*handles, *numbers])}):"]
    for argument, type_ in zip(arguments, types, strict=False):
        name, axes = names[argument.name], [_write_dim(str(dim), symbols, "//") for dim in type_.shape]
        shape = f"({', '.join(axes)}{',' * (len(axes) == 1)})"
        rows.append(f'    {name} = T.match_buffer({name}_handle, {shape}, "{name_type(type_.dtype)}")')
    return "\n".join(rows) + "\n"


def check_head(problem: Problem, source: str) -> tuple[Diagnostic, ...]:
    """Whether a text that `check_source` lets pass begins with the head of the problem: the first line that does not,
    where it does not."""
    head, given = read_function(write_head(problem)), read_function(source)
    pairs: list[tuple[ast.AST, ast.AST | None]] = [(head.args, given.args)]
    pairs += [(stated, dict(enumerate(given.body)).get(place)) for place, stated in enumerate(head.body)]
    for stated, written in pairs:
        if written is None or ast.dump(stated) != ast.dump(written):
            line = getattr(written, "lineno", given.lineno)
            text = source.split("\n")[line - 1].strip()[:300]
            expected = ast.unparse(stated) if stated is not head.args else f"def kernel({ast.unparse(stated)}):"
            return (Diagnostic(KIND, "function", text, expected, "begin with the lines under `function`", line),)
    for node in ast.walk(ast.Module(given.body[len(head.body) :], [])):
        if isinstance(node, ast.Attribute) and node.attr == "match_buffer":
            remedy = "use the arrays of the head: two names of one are not told apart"
            return (Diagnostic(KIND, "function", "T.match_buffer", "the head's alone", remedy, node.lineno),)
    if len(given.body) == len(head.body):
        return (Diagnostic(KIND, "function", "nothing behind its head", "statements", "compute the outputs"),)
    return ()


def write_unit(problem: Problem, launch: str = _LAUNCH) -> str:
    """The C that defines `kernel` for what TVM compiled; `launch`: how a team is started."""
    signature, types = make_signature(problem), _list_types(problem)
    symbols = _choose_symbols(problem)
    rows = [_UNIT.replace("LAUNCH", launch), signature.prototype.removesuffix(";"), "{"]
    fields = []
    for place, (argument, type_) in enumerate(zip(signature.arguments, types, strict=False)):
        _, code, bits = _WORDS.get(type_.dtype, _BYTE)
        axes = [_write_dim(str(dim), symbols, "/") for dim in type_.shape]
        shape, strides = ", ".join(axes) or "1", _write_strides(place, len(axes))
        rows.append(f"  int64_t opsmith_shape{place}[] = {{{shape}}}, opsmith_strides{place}[] = {{{strides}}};")
        layout = f"1, 0, {len(axes)}, {code}, {bits}, 1, opsmith_shape{place}, opsmith_strides{place}, 0"
        rows.append(f"  opsmith_tensor opsmith_tensor{place} = {{{argument.name}, {layout}}};")
        fields.append(f"{{{_TENSOR}, 0, {{.place = &opsmith_tensor{place}}}}}")
    for argument in signature.arguments[len(types) :]:
        _, number, field = _ARGUMENT_TYPES[argument.c_type]
        fields.append(f"{{{number}, 0, {{.{field} = {argument.name}}}}}")
    rows.append(f"  const opsmith_argument opsmith_arguments[] = {{{', '.join(fields)}}};")
    return "\n".join([*rows, f"  opsmith_call(opsmith_arguments, {len(fields)});", "}"]) + "\n"


def write_c_form(problem: Problem, assembly: str, isa: str) -> str:
    """One unit in C with all of a program: what TVM made of it stands in it as assembly, which nothing outside sees.

    It is for programs that are taken away; `isa`: what TVM compiled for, and what gcc is told.
    """
    unit = _POINTER.sub(
        lambda match: f"{'OPSMITH_HIDDEN extern' if f'{match[2]}:' in assembly else 'static'} {match[1]}",
        write_unit(problem).replace("OPSMITH_HIDDEN void TVMFFI", "static void TVMFFI"),
    )
    rows = [row for row in assembly.splitlines() if not row.startswith(("\t.globl\t", "\t.weak\t"))]
    lines = "\n".join(json.dumps(f"{row}\n") for row in [*rows, "\t.text"])
    feature = next((macro for name, macro in _FEATURES.items() if isa == name), None)
    error = f"#error made by TVM for {isa}: another instruction set takes another export"
    check = f"#ifndef {feature}\n{error}\n#endif\n" if feature else ""
    return f"/* Made by TVM from the program beside it, and by opsmith. */\n{check}{unit}__asm__(\n{lines});\n"


def list_arrays(problem: Problem) -> dict[str, str]:
    """What inputs and outputs are, by the names that programs give them."""
    names, arguments = _choose_names(problem), make_signature(problem).arguments
    return {names[each.name]: each.meaning.partition(":")[0] for each in arguments[: len(_list_types(problem))]}


def _list_types(problem: Problem) -> list[ArrayType]:
    """Of inputs, then outputs, as the signature has them."""
    return [tensor.type for tensor in problem.tensors] + [type_ for out in problem.outputs for type_ in out.types]


def _choose_names(problem: Problem) -> dict[str, str]:
    """What Python takes, by the names in C: `T` is TVM's, and `in` a word of the language."""
    arguments: tuple[Argument, ...] = make_signature(problem).arguments
    used, names = {argument.name for argument in arguments}, {}
    for argument in arguments:
        name = re.sub("__+", "_", argument.name)
        while name in ("T", "range") or keyword.iskeyword(name) or (name != argument.name and name in used):
            name += "x" if name.endswith("_") else "_"
        used.add(name)
        names[argument.name] = name
    return names


def _choose_symbols(problem: Problem) -> dict[str, str]:
    """The names in C of sizes, by their symbols."""
    sizes = (argument for argument in make_signature(problem).arguments if argument.meaning.startswith("the size "))
    return {argument.meaning.removeprefix("the size "): argument.name for argument in sizes}


def _write_dim(dim: str, names: Mapping[str, str], division: str) -> str:
    """A monomial such as 2*M/K, with other names for its symbols."""
    text = re.sub(r"[^\W\d]\w*", lambda match: names.get(match[0], match[0]), dim)
    return text.replace("/", f" {division} ").replace("*", " * ")


def _write_strides(place: int, axes: int) -> str:
    factors = [[f"opsmith_shape{place}[{inner}]" for inner in range(axis + 1, axes)] for axis in range(axes)]
    return ", ".join(" * ".join(row) or "1" for row in factors) or "1"
