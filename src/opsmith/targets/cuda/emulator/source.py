"""A program and its plan as the C++ that is compiled: what is rewritten, what calls the kernels, what is not emulated.

The program stands on its own lines of `kernel.cu`, which a file of ours includes; what calls a kernel has the line of
its launch, so that g++ tells a mismatch there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opsmith.targets.gpu.plan import INPUT, NUMBER, WHOLE, BoundArgument, BoundLaunch, BoundPlan

PROGRAM, MAIN = "kernel.cu", "opsmith_kernel.cpp"
MARK = "opsmith: "  # begins what static_assert says of a launch
MOST_SHARED = 128  # declarations with __shared__

_DYNAMIC = re.compile(
    r"\bextern\b(?P<before>[^;{}]*?)\b__shared__\b(?P<type>[^;{}\[\]]*?)\b(?P<name>\w+)\s*"
    r"\[\s*\](?P<dims>(?:\s*\[[^\]]*\])*)\s*;"
)
_ALIGNMENT = re.compile(r"\b(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_ALIGNED = re.compile(r"\b__shared__(\s+)(alignas\s*\((?:[^()]|\([^()]*\))*\))")
_STATIC = re.compile(r"\bstatic(\s+)(?=__shared__\b)|(?<=\b__shared__)(\s+)static\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_REDUCE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<cooperative_groups/reduce\.h>", re.M)  # in the other header
_HALVES = re.compile(r"half|bfloat|fp16|bf16", re.IGNORECASE)
_FOREIGN = (
    (re.compile(r"\b(?:__asm__|asm)\b"), "inline PTX (asm)"),
    (re.compile(r"\b(?:wmma|nvcuda)\b"), "wmma"),
    (re.compile(r"\bcp_async|\b__pipeline_|\bmemcpy_async\b|\bcuda::"), "cp.async and libcu++"),
    (re.compile(r"\b(?:this_grid|grid_group|this_cluster|cluster_group)\b"), "cooperative groups of a grid"),
    (re.compile(r"\b(?:coalesced_threads|coalesced_group|\w+ary_partition|labeled_partition)\b"), "coalesced groups"),
    (re.compile(r"\bcub::"), "cub"),
    (re.compile(r"<<<"), "launches from a kernel"),
    (re.compile(r"\bcluster(?:Idx|Dim)\b|\b__cluster_dims__\b"), "thread block clusters"),
    (re.compile(r"\b(?:tex[123]D|surf[123]D|cudaTextureObject_t)\b"), "textures"),
    (re.compile(r"\b__nv_fp8|\bcuda_fp8|\b__nv_fp4|\bcuda_fp4|\bcuda_fp6"), "fp8 and smaller"),
    (re.compile(r"\b__nv_\w+_to_|\b__vadd[us]*[24]\b|\b__vsub[us]*[24]\b"), "SIMD words"),
    (re.compile(r"\b__attribute__\s*\(\(\s*no_sanitize|\bno_sanitize\b|#\s*pragma\s+GCC\b"), "attributes of gcc"),
    (re.compile(r"\bopsmith\w*|\bOPSMITH\w*|\b__tsan_\w+|\b__ubsan_\w+"), "names of the emulator"),
)


def find_foreign(source: str) -> tuple[int, str] | None:
    """The first line that uses what is not emulated, and what that is in words."""
    text = blank_texts(source)
    uses = ((match.start(), words) for pattern, words in _FOREIGN if (match := pattern.search(text)))
    first = min(uses, default=None)
    if first is None and len(re.findall(r"\b__shared__\b", text)) > MOST_SHARED:
        return 1, f"more than {MOST_SHARED} declarations with __shared__"
    return None if first is None else (text.count("\n", 0, first[0]) + 1, first[1])


def blank_texts(source: str) -> str:
    """Blanks for comments, strings and characters; the lines stay."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def adapt_program(source: str) -> str:
    """The program with dynamic shared memory as a pointer to the runtime's; the lines stay."""
    text = _REDUCE.sub("#include <cooperative_groups.h>", _DYNAMIC.sub(_point_to_dynamic, source))
    text = _ALIGNED.sub(r"\2\1__shared__", text)
    return _STATIC.sub(lambda match: match[1] or match[2], text)


def _point_to_dynamic(match: re.Match[str]) -> str:
    words = f"{match['before']} {match['type']}"
    type_ = " ".join(_ALIGNMENT.sub(" ", re.sub(r'"C"', " ", words)).split())
    dims = match["dims"].strip()
    declarator = f"(*const {match['name']}){dims}" if dims else f"*const {match['name']}"
    pointer = f"{type_} (*){dims}" if dims else f"{type_} *"
    lines = "\n" * match[0].count("\n")
    return f"static {type_} {declarator} = ({pointer})opsmith_dynamic_memory;{lines}"


def write_main(source: str, plan: BoundPlan) -> str:
    """The file that is compiled. Numbers of 16 bits take a while to compile: only where they are named."""
    halves = ['#include "opsmith_half.h"'] if _HALVES.search(source) else []
    return "\n".join(
        [
            '#include "opsmith_emulator.h"',
            *halves,
            "namespace {",
            f'#include "{PROGRAM}"',
            "}  // namespace",
            *(line for number, launch in enumerate(plan.launches) for line in _write_launch(number, launch)),
            "",
        ]
    )


def _write_launch(number: int, launch: BoundLaunch) -> Iterator[str]:
    arguments = launch.arguments
    place = f'#line {launch.line} "{PROGRAM}"'
    signature = f"opsmith_signature_{number}"
    yield from (place, f"typedef opsmith::Kernel<decltype(&{launch.kernel})> {signature};")
    count = f"{launch.kernel} takes another number of arguments than the {len(arguments)} of args"
    yield from (place, f'static_assert({signature}::count == {len(arguments)}, "{MARK}{count}");')
    for i, argument in enumerate(arguments):
        words = f"{MARK}{launch.kernel} takes {describe_argument(argument)} with another type of parameter"
        yield from (place, f'static_assert({signature}::template takes<{i}, {_write_tag(argument)}>(), "{words}");')
    tags = ", ".join(map(_write_tag, arguments))
    call = f"opsmith::call<{tags}>({launch.kernel});" if arguments else f"{launch.kernel}();"
    yield from (place, f'extern "C" __attribute__((visibility("default"))) void {name_entry(number)}() {{ {call} }}')


def name_entry(number: int) -> str:
    """The function of a launch in the library."""
    return f"opsmith_kernel_{number}"


def _write_tag(argument: BoundArgument) -> str:
    if argument.kind == NUMBER:
        return "opsmith::Whole" if argument.type == WHOLE else "opsmith::Real"
    container = "Input" if argument.kind == INPUT else "Array"
    return f"opsmith::{container}<opsmith::{'boolean' if argument.type == 'bool' else argument.type}>"


_POINTERS = {
    "fp32": "float *",
    "fp64": "double *",
    "fp16": "__half *",
    "bf16": "__nv_bfloat16 *",
    "int8": "signed char *",
    "int32": "int *",
    "int64": "long long *",
    "bool": "bool *",
}


def describe_argument(argument: BoundArgument) -> str:
    """`the input x, fp32: const float *`."""
    if argument.kind == NUMBER:
        return f"the number {argument.name}, {'int or long long' if argument.type == WHOLE else 'float or double'}"
    const = "const " if argument.kind == INPUT else ""
    return f"the {argument.kind} {argument.name}, {argument.type}: {const}{_POINTERS[argument.type]}"


def list_parameters(source: str, kernel: str) -> Sequence[str]:
    """The parameters of a kernel as they are written; empty where they cannot be told."""
    match = re.search(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)", blank_texts(source))
    return [" ".join(part.split()) for part in match[1].split(",")] if match and match[1].strip() else []
