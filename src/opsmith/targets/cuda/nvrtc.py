"""One compile of kernels by NVRTC, in a confined process of its own (`nvrtc_process`), to a cubin of a stated
architecture.

The process may read the compiler's packages and Python's library, write in one temporary folder, and start no other
process. What comes back is one of three, as from a C compiler (`running.compiler`): what it made, a refusal (what it
said, or the limit that the source broke), or a failure of ours. A refusal counts only where the same compiler takes a
right program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands
from opsmith.running.compiler import CompileFailure, CompileRefusal
from opsmith.targets.cuda import nvrtc_process
from opsmith.targets.cuda.nvrtc_process import ANSWER, CUBIN, REFUSED, SOURCE
from opsmith.targets.cuda.toolkit import NO_NVRTC, CudaToolkit, find_python, find_toolkit

LIMITS = CommandLimits(
    cpu_seconds=10,
    seconds=60.0,
    memory=4 << 30,  # of addresses, of which its libraries map a part
    resident=1 << 30,
    threads=32,
    printed_bytes=1 << 16,
)
LARGEST_LOG = 1 << 20  # bytes of its answer
_PRELUDE = "opsmith_prelude.h"
INCLUDES = Path(__file__).parent / "include"
_NO_MEMORY = ("OUT_OF_MEMORY", "bad_alloc", "out of memory", "MemoryError")


@dataclass(frozen=True)
class CudaOrder:
    """What is compiled, for which architecture; `kernels`: those whose symbols are asked for."""

    source: str
    kernels: tuple[str, ...]
    arch: str  # sm_90

    @property
    def options(self) -> tuple[str, ...]:
        """All that the result depends on beside source and compiler."""
        return (f"--gpu-architecture={self.arch}", "--std=c++17", "--generate-line-info", "--ptxas-options=-v")


@dataclass(frozen=True)
class CubinResult:
    """What the compiler made of a source."""

    cubin: bytes
    log: str  # warnings, and the resources of each kernel as ptxas prints them
    symbols: Mapping[str, str]  # what each kernel is called in the cubin


def compile_kernels(order: CudaOrder, limits: CommandLimits = LIMITS) -> CubinResult | CompileRefusal | CompileFailure:
    """Compile. Raises nothing for a source, whatever it holds."""
    toolkit = find_toolkit()
    if toolkit is None:
        return CompileFailure(NO_NVRTC)
    result = _run_process(toolkit, order, limits)
    if isinstance(result, CompileRefusal) and (reason := _find_fault(toolkit, limits)):
        return CompileFailure(reason)
    return result


@cache
def _find_fault(toolkit: CudaToolkit, limits: CommandLimits) -> str:
    """Why its refusals say nothing, since it refuses a right program too; "": they count."""
    source = "#include <cuda_fp16.h>\n__global__ void probe(const __half *x, float *y) { y[0] = __half2float(x[0]); }\n"
    result = _run_process(toolkit, CudaOrder(source, ("probe",), "sm_90"), limits)
    if isinstance(result, CubinResult):
        return ""
    if isinstance(result, CompileFailure):
        return result.reason
    words = " ".join((result.limit or result.messages).split())
    return f"NVRTC refuses a right program too: {words[-200:]}"


def _run_process(
    toolkit: CudaToolkit, order: CudaOrder, limits: CommandLimits
) -> CubinResult | CompileRefusal | CompileFailure:
    script = Path(nvrtc_process.__file__).resolve()
    includes = [f"--include-path={folder}" for folder in (INCLUDES.resolve(), toolkit.headers)]
    request = {
        "builtins": str(toolkit.builtins),
        "compiler": str(toolkit.compiler),
        "kernels": order.kernels,
        "options": [*order.options, *includes, f"--pre-include={_PRELUDE}"],
    }
    command = [str(find_python()), "-I", "-S", str(script), json.dumps(request)]
    files = {SOURCE: order.source.encode("utf-8", "replace")}
    readable = (*toolkit.readable, script, INCLUDES.resolve())
    confined = CommandOrder(files, [command], (ANSWER, CUBIN), {"LC_ALL": "C"}, readable, has_processes=False)
    result = run_commands(confined, limits)
    if isinstance(result, CommandFailure):
        return CompileFailure(result.reason)
    if result.is_late:
        return CompileFailure(f"NVRTC had not ended after {limits.seconds:g} s; is the machine too busy?")
    return _read_result(result, limits)


def _read_result(result: CommandResult, limits: CommandLimits) -> CubinResult | CompileRefusal | CompileFailure:
    if not result.is_ended_well:
        limit = result.limit
        if not limit and any(words in result.messages for words in _NO_MEMORY):
            limit = f"{limits.memory} bytes of memory"
        return CompileRefusal(result.messages, limit)
    answer = _read_answer(result.files.get(ANSWER, b""))
    if answer is None:
        return CompileFailure("NVRTC left no answer")
    if answer["code"] == REFUSED:
        return CompileRefusal(answer["log"])
    if CUBIN not in result.files:
        return CompileFailure("NVRTC left no cubin")
    return CubinResult(result.files[CUBIN], answer["log"], answer["symbols"])


def _read_answer(data: bytes) -> dict[str, Any] | None:
    if len(data) > LARGEST_LOG:
        return {"code": REFUSED, "log": data[:LARGEST_LOG].decode(errors="replace"), "symbols": {}}
    try:
        answer: dict[str, Any] = json.loads(data)
    except ValueError:
        return None
    return answer
