"""One build of Triton's kernels for a stated GPU: Triton makes PTX in a confined fork, then its own ptxas a cubin.

Neither needs a GPU. Kernels that sizes ask for differently are compiled each for itself and joined in one module. The
result is kept in the cache of builds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opsmith.records import Diagnostic
from opsmith.running.commands import SYSTEM, CommandFailure, CommandLimits, CommandOrder, run_commands
from opsmith.running.compiler import CompileFailure
from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.diagnostics import KIND
from opsmith.targets.native.forked import ForkedCompiler
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, hide_paths, show_line
from opsmith.targets.triton.specialising import Specialisation

VERSION = "3.6.0"  # whose interpreter the judge knows
NO_TRITON = "the language Triton: its compiler is not installed; try: pip install 'opsmith[triton]' (640 MB installed)"
_COMPILER = ForkedCompiler("Triton", "opsmith.targets.triton.triton_process", "smaller blocks, fewer unrolled loops")
_FORM = "triton cubin 1"  # raise it when what is made of a text changes
_PTX, _CUBIN = "program.ptx", "program.cubin"
_LIMITS = CommandLimits(cpu_seconds=30, memory=4 << 30, resident=1 << 30, threads=8)
_ADVICE: Advice = (
    (r"(\w+) is not defined", "a name that is defined above its use", "define {0}, or pass it as a parameter"),
    (r"arange's range must be a power of 2|[Ss]hape element \d+ must be a power of 2", "sizes that are powers of two",
     "BLOCK=next_pow2(N) in meta=(...), and a mask"),
    (r"(\w+)\.constexpr|must be a? ?constexpr", "a value that is known when it is compiled", "pass it by meta=(...)"),
    (r"Cannot make_shape_compatible|incompatible dimensions|[Ss]hape mismatch", "shapes that fit: equal, or 1",
     "add axes by [:, None] and [None, :]"),
    (r"Mismatched type for (\w+)|Loop-carried variable (\w+)", "a variable that keeps its type and shape",
     "give it that type before the loop: tl.zeros((BLOCK,), dtype=tl.float32)"),
    (r"Input shapes should have|[Mm]inimum dot size|should have M >= ", "blocks that are large enough for tl.dot",
     "max(16, next_pow2(K)) in meta=(...), and masks"),
    (r"numel|maximum tensor numel", "tensors of at most 1048576 entries", "loop over blocks"),
    (r"unsupported AST node type: (\w+)", "statements that Triton knows", "write it without {0}"),
    (r"did you forget to add @triton.jit|Cannot access global variable (\w+)", "parameters", "pass it by meta=(...)"),
)  # fmt: skip


@dataclass(frozen=True)
class TritonOrder:
    """What is compiled, for whom; the order of kernels is that of the names in the result."""

    problem: str  # digest
    source: str
    arch: str  # sm_90
    kernels: tuple[Specialisation, ...]


@dataclass(frozen=True)
class TritonCubin:
    """What became of it."""

    cubin: bytes
    log: str  # the resources of each kernel as ptxas prints them
    arch: str  # that it runs on: sm_90a
    kernels: Mapping[str, Mapping[str, Any]]  # by `Specialisation.key`: `symbol`, bytes of `shared` memory, `warps`


def explain_lack_of_triton() -> str:
    if find_spec("triton") is None:
        return NO_TRITON
    version = metadata.version("triton")
    return "" if version == VERSION else f"the language Triton: given triton {version}; expected {VERSION}"


@cache
def describe_triton() -> str:
    """Its name and version."""
    return f"triton {VERSION}" if not explain_lack_of_triton() else "no triton"


def compile_kernels(order: TritonOrder, store: BuildCache | None) -> TritonCubin | BuildRefusal | CompileFailure:
    """The cubin of all kernels."""
    texts = json.dumps([order.source, [each.key for each in order.kernels]])
    key = BuildKey(order.problem, _FORM, texts, order.arch, describe_triton())
    data = store.fetch(key) if store is not None else None
    if data is None:
        result = _make_cubin(order)
        if not isinstance(result, TritonCubin):
            return result
        head = json.dumps([result.log, result.arch, result.kernels]).encode()
        data = len(head).to_bytes(8, "little") + head + result.cubin
        if store is not None:
            store.store(key, data)
    end = 8 + int.from_bytes(data[:8], "little")
    return TritonCubin(data[end:], *json.loads(data[8:end]))


def _make_cubin(order: TritonOrder) -> TritonCubin | BuildRefusal | CompileFailure:
    answer = _COMPILER.ask(
        {
            "source": order.source,
            "arch": int(order.arch.removeprefix("sm_")),
            "kernels": [each.write_request() for each in order.kernels],
        }
    )
    if isinstance(answer, BuildRefusal | CompileFailure):
        return answer
    if "kernels" not in answer:
        message, line = str(answer["message"]), int(answer["line"]) or int(answer["launch"])
        expected, remedy = choose_advice(message, _ADVICE, hide_paths, "a program that Triton compiles")
        finding = Diagnostic(KIND, "program", cut_line(hide_paths(message)), expected, remedy)
        return BuildRefusal((_point(finding, line, order.source),))
    modules: Sequence[Mapping[str, Any]] = answer["kernels"]
    symbols = [f"{each.kernel}_{number}" for number, each in enumerate(order.kernels)]
    if refusal := _find_excess(order, modules):
        return refusal
    ptx = _join_modules([str(each["ptx"]) for each in modules], order.kernels, symbols)
    kernels = {
        each.key: {"symbol": symbol, "shared": int(words["shared"]), "warps": dict(each.options)["num_warps"]}
        for each, symbol, words in zip(order.kernels, symbols, modules, strict=True)
    }
    return _assemble(ptx, kernels)


def _find_excess(order: TritonOrder, modules: Sequence[Mapping[str, Any]]) -> BuildRefusal | None:
    largest = ARCHITECTURES[order.arch].shared_of_block
    for each, words in zip(order.kernels, modules, strict=True):
        if words["shared"] > largest:
            text = f"{words['shared']} bytes of shared memory at {dict(each.constants)}"
            finding = Diagnostic(
                KIND, f"launch {each.kernel}", text, f"at most {largest}", "smaller blocks, num_stages=2"
            )
            return BuildRefusal((_point(finding, each.line, order.source),))
        if words["scratch"]:
            text = f"{words['scratch']} bytes of scratch memory"
            finding = Diagnostic(KIND, f"launch {each.kernel}", text, "none", "a workspace line")
            return BuildRefusal((_point(finding, each.line, order.source),))
    return None


def _join_modules(texts: Sequence[str], kernels: Sequence[Specialisation], symbols: Sequence[str]) -> str:
    """One module: what stands before the kernels once, then each kernel under its symbol."""
    heads, bodies = dict[str, None](), []
    for text, each, symbol in zip(texts, kernels, symbols, strict=True):
        head, entry, body = text.partition(".visible .entry")
        heads |= dict.fromkeys(row for row in head.splitlines() if not row.lstrip().startswith("//"))
        bodies.append(re.sub(rf"\b{each.kernel}(?=_param_\d+\b|\()", symbol, entry + body))
    return "\n".join([*heads, *bodies])


def _assemble(ptx: str, kernels: Mapping[str, Mapping[str, Any]]) -> TritonCubin | BuildRefusal | CompileFailure:
    arch = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    spec = find_spec("triton")
    if arch is None or spec is None or spec.origin is None:
        return CompileFailure("Triton made no PTX")
    name = "ptxas-blackwell" if int(re.sub(r"\D", "", arch[1])) >= 100 else "ptxas"
    program = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
    command = [str(program), "-v", f"--gpu-name={arch[1]}", _PTX, "-o", _CUBIN]
    readable = (program, *map(Path, SYSTEM))
    confined = CommandOrder({_PTX: ptx.encode()}, [command], (_CUBIN,), {}, readable, has_processes=False)
    result = run_commands(confined, _LIMITS)
    if isinstance(result, CommandFailure):
        return CompileFailure(result.reason)
    if result.is_ended_well and _CUBIN in result.files:
        return TritonCubin(result.files[_CUBIN], result.messages, arch[1], kernels)
    if result.is_late:
        return CompileFailure(f"ptxas had not ended after {_LIMITS.seconds:g} s; is the machine too busy?")
    message = cut_line(hide_paths(result.limit or result.messages))
    finding = Diagnostic(
        KIND, "ptxas", f"refused: {message}", "kernels that it takes", "smaller blocks, fewer unrolled loops"
    )
    return BuildRefusal((finding,))


def _point(finding: Diagnostic, line: int, source: str) -> Diagnostic:
    lines = source.split("\n")
    where = line if 1 <= line <= len(lines) else None
    return replace(finding, line=where, text=show_line(lines, where))
