"""One build: source to shared object, through the cache and the confined compiler, or the findings, or our failure."""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.records import Diagnostic
from opsmith.running.compiler import (
    DEFAULT_LIMITS,
    Artefact,
    CompileFailure,
    CompileLimits,
    CompileOrder,
    CompileRefusal,
    run_compiler,
)
from opsmith.running.toolchain import NO_COMPILER, find_toolchain
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.diagnostics import explain_refusal
from opsmith.targets.native.flags import BuildFlags
from opsmith.targets.native.signature import Signature

SOURCE, HEADER, OBJECT, LIBRARY = "kernel.c", "opsmith_kernel.h", "kernel.o", "kernel.so"
_MESSAGES = ("-fdiagnostics-format=json", "-ftrack-macro-expansion=1")


@dataclass(frozen=True)
class BuildRequest:
    """What is built, for whom."""

    problem: str  # digest
    target: str
    signature: Signature
    source: str
    flags: BuildFlags


@dataclass(frozen=True)
class BuildRefusal:
    """The source is at fault."""

    errors: tuple[Diagnostic, ...]


BuildResult = Artefact | BuildRefusal | CompileFailure


def build_library(
    request: BuildRequest, cache: BuildCache | None = None, limits: CompileLimits = DEFAULT_LIMITS
) -> BuildResult:
    """The shared object with the function of a candidate. Only artefacts are kept in the cache."""
    toolchain = find_toolchain()
    if toolchain is None:
        return CompileFailure(NO_COMPILER)
    key = _make_key(request, toolchain.version)
    data = cache.fetch(key) if cache is not None else None
    if data is not None:
        return Artefact(data)
    result = run_compiler(_write_order(request), limits)
    if isinstance(result, CompileRefusal):
        return BuildRefusal(explain_refusal(result, request.source, SOURCE, request.signature.prototype))
    if isinstance(result, Artefact) and cache is not None:
        cache.store(key, result.data)
    return result


def _make_key(request: BuildRequest, compiler: str) -> BuildKey:
    """The header is part of the source: problems whose texts differ may ask for one function."""
    source = f"{request.signature.header}\n{request.source}"
    return BuildKey(request.problem, request.target, source, request.flags.key, compiler)


def _write_order(request: BuildRequest) -> CompileOrder:
    """Compile and link apart: the link has no fast-math flags."""
    files = {SOURCE: request.source.encode("utf-8", "replace"), HEADER: request.signature.header.encode()}
    compile_command = (
        *request.flags.compile_flags,
        "-fPIC",
        *_MESSAGES,
        "-include",
        HEADER,
        "-c",
        SOURCE,
        "-o",
        OBJECT,
    )
    link_command = (OBJECT, "-o", LIBRARY, *request.flags.link_flags)
    return CompileOrder(files, (compile_command, link_command), LIBRARY)
