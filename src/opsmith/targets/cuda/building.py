"""One build of a CUDA program: NVRTC judges it and makes a cubin, then g++ compiles it for the emulator.

Both compilers are confined processes, and both results are kept in the cache of builds. What NVRTC refuses is the
source's fault. What it takes and the emulator does not know is nobody's: the program stays unjudged here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.records import content_hash
from opsmith.running.compiler import CompileFailure
from opsmith.running.toolchain import CXX_COMPILER, find_toolchain
from opsmith.targets.cuda.dialect import CUDA_DIALECT
from opsmith.targets.cuda.messages import explain_refusal
from opsmith.targets.cuda.nvrtc import INCLUDES, CubinResult, CudaOrder, compile_kernels
from opsmith.targets.cuda.toolkit import NO_NVRTC, CudaToolkit, find_toolkit
from opsmith.targets.cuda.unsupported import list_unsupported, needs_absent_header
from opsmith.targets.gpu.emulator.building import build_libraries
from opsmith.targets.gpu.emulator.running import PLAN
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.programs import Build

CUBIN, KERNELS = "cubin", "kernels"  # artefacts, beside those of the emulator
NOT_EMULATED = "not emulated"
NEEDED = "a program that is emulated, or a GPU"


@dataclass(frozen=True)
class CudaRequest:
    """What is built, for whom."""

    problem: str  # digest
    source: str
    plan: BoundPlan
    arch: str

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(self.plan.list_kernels())


def build_cuda(request: CudaRequest, store: BuildCache | None, is_kept: bool = False) -> Build:
    """Artefacts for the emulator and for a GPU, or the findings, or why it cannot be judged. `is_kept`: also for passes
    in which locals hold what they happen to."""
    if needs_absent_header(request.source):
        return _leave_unjudged(_describe_unsupported(request.source))
    result = compile_cached(request, store)
    if not isinstance(result, CubinResult):
        return result
    if reason := _describe_unsupported(request.source):
        return _leave_unjudged(reason)
    libraries = build_libraries(CUDA_DIALECT, request.source, request.plan, store, is_kept, NEEDED)
    if isinstance(libraries, Build):
        return libraries
    kernels = {"arch": request.arch, "symbols": dict(result.symbols)}
    artefacts = {
        **libraries,
        PLAN: request.plan.write_json().encode(),
        CUBIN: result.cubin,
        KERNELS: json.dumps(kernels).encode(),
    }
    return Build(artefacts, toolchain=describe_tools(request.arch))


def _leave_unjudged(reason: str) -> Build:
    """Nobody is at fault: only a GPU can judge it."""
    return Build({}, failure=reason, needed=NEEDED)


def describe_tools(arch: str = "") -> str:
    """Both compilers with their versions, and that nothing ran on a GPU."""
    toolchain = find_toolchain(CXX_COMPILER)
    emulator = toolchain.version if toolchain is not None else "no g++"
    return f"{name_compiler()}{arch and ' '}{arch}, emulated by {emulator}"


def name_compiler() -> str:
    """NVRTC with its version."""
    toolkit = find_toolkit()
    return toolkit.version if toolkit is not None else "no nvrtc"


def _describe_unsupported(source: str) -> str:
    reasons = list(dict.fromkeys(list_unsupported(source)))
    return f"{NOT_EMULATED}: {'; '.join(reasons[:3])}" if reasons else ""


# -- the cubin


def compile_cached(request: CudaRequest, store: BuildCache | None) -> CubinResult | Build:
    """What NVRTC makes of it; a build with errors or a failure where it makes nothing."""
    toolkit = find_toolkit()
    if toolkit is None:
        return Build({}, failure=NO_NVRTC)
    order = CudaOrder(request.source, request.kernels, request.arch)
    key = _make_cubin_key(request, order, toolkit)
    data = store.fetch(key) if store is not None else None
    if data is not None:
        return _read_cubin(data)
    result = compile_kernels(order)
    if isinstance(result, CubinResult):
        if store is not None:
            store.store(key, _write_cubin(result))
        return result
    if isinstance(result, CompileFailure):
        return Build({}, failure=result.reason)
    lines = {launch.kernel: launch.line for launch in reversed(request.plan.launches)}
    return Build({}, errors=explain_refusal(result, request.source, lines))


def _make_cubin_key(request: CudaRequest, order: CudaOrder, toolkit: CudaToolkit) -> BuildKey:
    source = f"{' '.join(order.kernels)}\n{request.source}"
    compiler = f"{toolkit.version} {toolkit.headers_version} {_hash_folder(INCLUDES)}"
    return BuildKey(request.problem, "cuda cubin", source, " ".join(order.options), compiler)


def _write_cubin(result: CubinResult) -> bytes:
    head = json.dumps({"log": result.log, "symbols": dict(result.symbols)}).encode()
    return len(head).to_bytes(8, "little") + head + result.cubin


def _read_cubin(data: bytes) -> CubinResult:
    """The inverse of `_write_cubin`."""
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    return CubinResult(data[end:], head["log"], head["symbols"])


@cache
def _hash_folder(folder: Path) -> str:
    """Of all texts in it: what is built with them changes when they do."""
    texts = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return content_hash(*(part for path in texts for part in (path.name, path.read_text("utf-8"))))
