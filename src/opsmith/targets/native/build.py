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
from opsmith.targets.native.variants import BARE, Variant

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
    variant: Variant = BARE

    @property
    def header(self) -> str:
        """What precedes the source."""
        return self.signature.header + self.variant.prelude

    @property
    def compile_flags(self) -> tuple[str, ...]:
        return (*self.flags.compile_flags, *self.variant.compile_flags)

    @property
    def link_flags(self) -> tuple[str, ...]:
        return (*self.flags.link_flags, *self.variant.link_flags)


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
    source = f"{request.header}\n{request.source}"
    flags = " ".join((*request.compile_flags, "|", *request.link_flags))
    return BuildKey(request.problem, request.target, source, flags, compiler)


def _write_order(request: BuildRequest) -> CompileOrder:
    """Compile and link apart: the link has no fast-math flags."""
    files = {SOURCE: request.source.encode("utf-8", "replace"), HEADER: request.header.encode()}
    compile_command = (
        *request.compile_flags,
        "-fPIC",
        *_MESSAGES,
        "-include",
        HEADER,
        "-c",
        SOURCE,
        "-o",
        OBJECT,
    )
    link_command = (OBJECT, "-o", LIBRARY, *request.link_flags)
    return CompileOrder(files, (compile_command, link_command), LIBRARY)
