"""Metal as the emulator of GPUs is told of it: its words, what is not emulated, and what is rewritten in programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from opsmith.records import Diagnostic
from opsmith.running.toolchain import CLANG
from opsmith.targets.gpu.emulator.dialect import EmulatedDialect, FindingWords, ProgramCheck
from opsmith.targets.gpu.emulator.library import LibraryFile
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.metal.messages import explain_messages
from opsmith.targets.metal.syntax import MetalKernel, MetalParameter, blank_attributes, find_threadgroup, list_kernels
from opsmith.targets.metal.words import POINTERS, POSITIONS
from opsmith.targets.native.messages import show_line

_CONSTANT = re.compile(r"((?:^|[;{}])\s*(?:static\s+)?)constant\b(?=[^;={}()*&]*[=\[])", re.MULTILINE)  # a variable
_VECTOR = re.compile(  # `float4 v(a, b, c, d);`, which clang takes for a number's first value; prototypes name types
    r"\b((?:u?char|u?short|u?int|u?long|float|half|bfloat)[234])(\s+)(\w+)\s*"
    r"\((?!\s*(?:\)|[A-Za-z_]\w*\s+[A-Za-z_]))((?:[^();{}]|\([^()]*\))*)\)(?=\s*;)"
)
_KERNEL = re.compile(r"\[\[\s*kernel\s*\]\]")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.MULTILINE)
MOST_SHARED = 32 << 10  # bytes of a threadgroup
_FOREIGN = (
    (re.compile(r"\b(?:texture|depth)(?:1d|2d|3d|cube|_buffer)\w*|\bsampler\b"), "textures"),
    (
        re.compile(r"\bsimdgroup_(?:matrix|load|store|multiply|async|event|float|half|bfloat)\w*"),
        "matrices of a simdgroup",
    ),
    (re.compile(r"\b(?:float|half)[234]x[234]\b|\bmatrix\s*<"), "matrices"),
    (re.compile(r"\bbool[234]\b|\bvec\s*<\s*bool"), "vectors of bool"),
    (re.compile(r"\bvec\s*<[^<>;]*>\s*\("), "vec<T, n>(...): write float4(...) and its like"),
    (re.compile(r"\bfunction_constant\b|\bhost_name\b"), "constants and names of the host"),
    (
        re.compile(r"\b(?:visible_function_table|intersect\w*|raytracing|acceleration_structure)\b"),
        "functions of the host",
    ),
    (re.compile(r"\bcooperative_tensor|\btensor_\w+|\bmpp\b"), "tensors"),
    (re.compile(r"\barray\s*<"), "array<T, n>: write T name[n]"),
    (re.compile(r"\bpacked_bfloat\w*|\bpacked_u?long\w*"), "packed vectors of that type"),
)


def write_checked(source: str) -> str:
    """The program as the compiler looks at it: without attributes and headers, which it does not know; lines stay."""
    source = _VECTOR.sub(r"\1\2\3 = \1(\4)", source)
    return _CONSTANT.sub(r"\1OPSMITH_CONSTANT", blank_attributes(_KERNEL.sub("kernel", _INCLUDE.sub("", source))))


def rewrite_program(source: str) -> str:
    """The program with memory of threadgroups as variables of the runtime's, and behind it what calls each kernel."""
    pieces, last = [], 0
    for place, is_variable, _ in find_threadgroup(source):
        if is_variable:
            pieces += [source[last:place], "OPSMITH_SHARED"]
            last = place + len("threadgroup")
    text = write_checked("".join([*pieces, source[last:]]))
    return "\n".join([text, *map(_write_entry, list_kernels(source)), ""])


def _write_entry(head: MetalKernel) -> str:
    """A function that takes what buffers hold, in their order, and gives the kernel all its parameters."""
    numbers = {place: number for number, place in head.buffers.items()}
    given = ", ".join(f"{_write_type(head.parameters[place])} opsmith_{n}" for n, place in sorted(head.buffers.items()))
    values = (
        f"opsmith_{numbers[place]}" if place in numbers else _write_value(parameter)
        for place, parameter in enumerate(head.parameters)
    )
    return f"static void opsmith_entry_{head.name}({given}) {{ {head.name}({', '.join(values)}); }}"


def _write_type(parameter: MetalParameter) -> str:
    return " ".join(word for word in parameter.words if word != "&")


def _write_value(parameter: MetalParameter) -> str:
    if "threadgroup" in parameter.words:
        return f"({_write_type(parameter)})opsmith_dynamic_memory"
    x, y, z = next(POSITIONS[attribute.name] for attribute in parameter.attributes if attribute.name in POSITIONS)
    return f"metal::opsmith_given<{parameter.type}>({x}, {y}, {z})"


def find_large_memory(library: bytes, plan: BoundPlan, source: str) -> Iterator[Diagnostic]:
    """Kernels whose threadgroup memory is more than a threadgroup has, as what was built of them says."""
    variables = LibraryFile(library, METAL_DIALECT.program).list_shared()
    for launch in {launch.kernel: launch for launch in reversed(plan.launches)}.values():
        size = sum(one.size for one in variables if f"{len(launch.kernel)}{launch.kernel}E" in one.symbol)
        if size > MOST_SHARED:
            remedy = "smaller tiles, or several passes over them"
            actual, expected = f"{size} bytes of threadgroup memory", f"at most {MOST_SHARED}"
            text = show_line(source.split("\n"), launch.line)
            yield Diagnostic("COMPILE", f"kernel {launch.kernel}", actual, expected, remedy, launch.line, None, text)


METAL_DIALECT = EmulatedDialect(
    name="metal",
    program="kernel.metal",
    headers=Path(__file__).parent / "headers",
    includes={"opsmith_metal.h": None},
    foreign=_FOREIGN,
    shared="threadgroup",
    kernel="kernel void {}(...)",
    pointers={dtype: f"device {type_} *" for dtype, type_ in POINTERS.items()},
    rewrite=rewrite_program,
    compiler=CLANG,
    flags=(
        *("-fno-caret-diagnostics", "-fno-sanitize=local-bounds", "-Xclang", "-cl-single-precision-constant"),
        *("-mllvm", "-tsan-instrument-read-before-write", "-mllvm", "-tsan-distinguish-volatile"),
        *("-mllvm", "-tsan-instrument-func-entry-exit=0"),
    ),
    entry="opsmith_entry_{}",
    check=ProgramCheck(
        file="checked.metal",
        flags=(
            *("-x", "clcpp", "-cl-std=CLC++2021", "-cl-no-stdinc", "-cl-single-precision-constant", "-nostdinc", "-I."),
            *("-include", "opsmith_metal.h", "-w", "-fno-caret-diagnostics", "-ferror-limit=8", "-fsyntax-only"),
        ),
        write=write_checked,
        explain=explain_messages,
    ),
    words=FindingWords(
        thread="thread",
        block="threadgroup",
        warp="simdgroup",
        shared="threadgroup memory",
        device="device memory",
        variable="a variable of the program",
        barrier="threadgroup_barrier(mem_flags::mem_threadgroup)",
        device_barrier="threadgroup_barrier(mem_flags::mem_device)",
        warp_barrier="simdgroup_barrier(mem_flags::mem_threadgroup)",
        full_mask="all lanes",
        trap="a trap",
        read_only="constant",
        operations=("simdgroup_barrier", *("a simd_ or quad_ function",) * 14),
    ),
)
