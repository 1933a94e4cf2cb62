"""What the compiler makes of a program: the remarks of its vectoriser on each loop, in words, and its assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opsmith.errors import OpsmithError
from opsmith.running.compiler import Artefact, CompileFailure, CompileOrder, CompileRefusal, run_compiler
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.native.build import HEADER, SOURCE, BuildRequest
from opsmith.targets.native.flags import Isa
from opsmith.targets.native.loop_dump import LoopRemark, read_loop_dump
from opsmith.targets.native.signature import Signature

MOST_LOOPS = 40  # that are told of, the innermost first
_DUMP, _OBJECT, _ASSEMBLY = "loops.txt", "kernel.o", "kernel.s"
_LONGEST_LINE = 120
_BYTES = {"float": 4, "double": 8, "_Float16": 2, "uint16_t": 2, "int8_t": 1, "uint8_t": 1, "int32_t": 4, "int64_t": 8}
_UNROLLED = re.compile(r"^[^\s:]+:(\d+):\d+: optimized:\s+loop with (\d+) iterations completely unrolled", re.MULTILINE)
_HEADING = """\
What the compiler made of each loop, innermost loops first ({compiler}; flags: {flags}).
"vectorised, 64 bytes": the loop works on that many bytes of numbers at once, which are 16 of fp32; what is not
vectorised works on one number at a time. "in-order reduction": it accumulates in the order of the program, so that each
addition waits for the one before and vectors gain little; several accumulators, or a reduction clause of omp simd,
allow another order. "a step": how many bytes further on an array is accessed in the next round of the loop.
"""


class BuildRemarksError(OpsmithError):
    """The compiler says nothing of a source."""


@dataclass(frozen=True)
class SourceLoop:
    """Where a loop stands in a source, by lines."""

    line: int
    depth: int  # 1: in no other loop
    is_innermost: bool
    places: Sequence[int]  # lines at which the compiler may say that it stands, the likeliest first


def describe_loops(request: BuildRequest, loops: Sequence[SourceLoop]) -> str:
    """What the compiler says of the loops of a source. Raises BuildRemarksError."""
    compiled = _compile_source(
        request, _OBJECT, ("-c", "-fopt-info-loop-optimized", f"-fdump-tree-vect-details={_DUMP}")
    )
    dump = compiled.further[_DUMP].decode(errors="replace")
    remarks = {remark.line: remark for remark in read_loop_dump(dump, _list_element_bytes(request.signature))}
    unrolled = {int(match[1]): int(match[2]) for match in _UNROLLED.finditer(compiled.messages)}
    lines = request.source.splitlines()
    ordered = sorted(loops, key=lambda loop: (not loop.is_innermost, -loop.depth, loop.line))
    toolchain = find_toolchain()
    flags = " ".join(flag for flag in request.flags.compile_flags if not flag.startswith("-W"))
    rows = [_HEADING.format(compiler=toolchain.version if toolchain is not None else "", flags=flags)]
    for loop in ordered[:MOST_LOOPS]:
        remark = next((remarks[place] for place in loop.places if place in remarks), None)
        rounds = next((unrolled[place] for place in loop.places if place in unrolled), 0)
        rows += _describe_loop(loop, lines[loop.line - 1], remark, rounds)
    if len(ordered) > MOST_LOOPS:
        rows.append(f"and {len(ordered) - MOST_LOOPS} further loops")
    return "\n".join(rows) + "\n"


def write_assembly(request: BuildRequest, isa: Isa | None = None) -> str:
    """The assembly of a source, with marks of its lines; `isa`: another instruction set. Raises BuildRemarksError."""
    flags = request.flags if isa is None else replace(request.flags, isa=isa)
    made = _compile_source(replace(request, flags=flags), _ASSEMBLY, ("-S", "-g1", "-fno-asynchronous-unwind-tables"))
    return made.data.decode(errors="replace")


def _compile_source(request: BuildRequest, output: str, options: Sequence[str]) -> Artefact:
    """Raises BuildRemarksError."""
    files = {SOURCE: request.source.encode("utf-8", "replace"), HEADER: request.signature.header.encode()}
    command = (*request.flags.compile_flags, "-fPIC", "-include", HEADER, *options, SOURCE, "-o", output)
    further = (_DUMP,) if output == _OBJECT else ()
    result = run_compiler(CompileOrder(files, (command,), output, further))
    if isinstance(result, CompileRefusal):
        raise BuildRemarksError(f"the program does not compile: {(result.limit or result.messages)[:200]}")
    if isinstance(result, CompileFailure):
        raise BuildRemarksError(f"{result.reason}; its vectoriser runs from -O2 on" if further else result.reason)
    return result


def _list_element_bytes(signature: Signature) -> dict[str, int]:
    arrays = [argument for argument in signature.arguments if "*" in argument.c_type]
    types = {array.name: array.c_type.removeprefix("const ").partition(" ")[0] for array in arrays}
    return {name: _BYTES[c_type] for name, c_type in types.items() if c_type in _BYTES}


def _describe_loop(loop: SourceLoop, text: str, remark: LoopRemark | None, rounds: int) -> Iterator[str]:
    kind = "innermost" if loop.is_innermost else "holds loops"
    yield f"line {loop.line}, {kind}, depth {loop.depth}: {text.strip()[:_LONGEST_LINE]}"
    if rounds and (remark is None or not remark.vector_bytes):
        yield f"  unrolled whole: {rounds} rounds stand one after the other, without a loop"
    elif remark is None and loop.is_innermost:
        yield "  nothing is said of it: it may be gone, or a call of memcpy or memset stands in its place"
    if remark is not None and not remark.is_nest and (loop.is_innermost or remark.vector_bytes or remark.steps):
        yield from (f"  {words}" for words in _list_findings(remark))


def _list_findings(remark: LoopRemark) -> Iterator[str]:
    if remark.vector_bytes:
        yield f"vectorised, {remark.vector_bytes} bytes" if remark.vector_bytes > 1 else "vectorised"
    else:
        yield f"not vectorised: {'; '.join(remark.reasons) or 'no reason is said'}"
    if remark.is_in_order:
        yield "in-order reduction"
    for name, step in remark.steps.items():
        yield f"{name}: a step of {step} bytes" if step else f"{name}: a step that is not one element"
