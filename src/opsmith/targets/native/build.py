"""One build: source to shared object, through the cache and the confined compiler, or the findings, or our failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from opsmith.records import Diagnostic
from opsmith.running.commands import CommandLimits
from opsmith.running.compiler import (
    DEFAULT_LIMITS,
    Artefact,
    CompileFailure,
    CompileOrder,
    CompileRefusal,
    run_compiler,
)
from opsmith.running.toolchain import NO_COMPILER, find_toolchain
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.diagnostics import explain_refusal
from opsmith.targets.native.flags import BuildFlags
from opsmith.targets.native.signature import Signature
from opsmith.targets.native.variants import BARE, EXPORTS, EXPORTS_FILE, Variant

SOURCE, HEADER = "kernel.c", "opsmith_kernel.h"
_MESSAGES = ("-fdiagnostics-format=json", "-ftrack-macro-expansion=1")
_OWN_FLAGS = ("-ftrivial-auto-var-init=zero", "-fPIC", "-w", "-c", "own.c", "-o", "own.o")


@dataclass(frozen=True)
class BuildRequest:
    """What is built, for whom."""

    problem: str  # digest
    target: str
    signature: Signature
    source: str
    flags: BuildFlags
    assembly: Mapping[str, str] = field(default_factory=dict)  # what is linked with it, by variant; "": with the others

    def find_assembly(self, variant: Variant) -> str:
        return self.assembly.get(variant.name) or self.assembly.get("", "")


@dataclass(frozen=True)
class BuildRefusal:
    """The source is at fault."""

    errors: tuple[Diagnostic, ...]


BuildResult = Artefact | BuildRefusal | CompileFailure
Libraries = Mapping[str, bytes]  # by the name of the variant


def explain_lack_of_compiler() -> str:
    """That there is no compiler here; "": there is one."""
    return "" if find_toolchain() is not None else NO_COMPILER


def build_library(
    request: BuildRequest, cache: BuildCache | None = None, limits: CommandLimits = DEFAULT_LIMITS
) -> BuildResult:
    """The shared object with the function of a candidate, as it is. Only artefacts are kept in the cache."""
    result = build_variants(request, (BARE,), cache, limits)
    return Artefact(result[BARE.name]) if isinstance(result, Mapping) else result


def build_variants(
    request: BuildRequest,
    variants: Sequence[Variant],
    cache: BuildCache | None = None,
    limits: CommandLimits = DEFAULT_LIMITS,
) -> Libraries | BuildRefusal | CompileFailure:
    """A shared object of each variant; those that the cache lacks are made by one process."""
    toolchain = find_toolchain()
    if toolchain is None:
        return CompileFailure(NO_COMPILER)
    keys = {variant.name: _make_key(request, variant, toolchain.version) for variant in variants}
    libraries = _fetch_libraries(keys, cache)
    missing = [variant for variant in variants if variant.name not in libraries]
    if not missing:
        return libraries
    result = _compile_variants(request, missing, limits)
    if not isinstance(result, Mapping):
        return result
    if cache is not None:
        for name, data in result.items():
            cache.store(keys[name], data)
    return {**libraries, **result}


def _fetch_libraries(keys: Mapping[str, BuildKey], cache: BuildCache | None) -> Libraries:
    pairs = ((name, cache.fetch(key)) for name, key in keys.items()) if cache is not None else ()
    return {name: data for name, data in pairs if data is not None}


def _make_key(request: BuildRequest, variant: Variant, compiler: str) -> BuildKey:
    """Header and surroundings are part of the source: problems whose texts differ may ask for one function."""
    texts = (request.signature.header, variant.surroundings, request.source, request.find_assembly(variant))
    source = "\n".join(texts[:3]) + texts[3]
    flags = " ".join((request.flags.key, "|", *variant.compile_flags, "|", *variant.link_flags))
    return BuildKey(request.problem, request.target, source, flags, compiler)


def _compile_variants(
    request: BuildRequest, variants: Sequence[Variant], limits: CommandLimits
) -> Libraries | BuildRefusal | CompileFailure:
    try:
        result = run_compiler(_write_order(request, variants), limits)
    except _SurroundingsError as error:
        return CompileFailure(str(error))
    if isinstance(result, CompileRefusal):
        return BuildRefusal(explain_refusal(result, request.source, SOURCE, request.signature.prototype))
    if isinstance(result, CompileFailure):
        return result
    files = (result.data, *result.further.values())
    return {variant.name: data for variant, data in zip(variants, files, strict=True)}


def _write_order(request: BuildRequest, variants: Sequence[Variant]) -> CompileOrder:
    """Compile all, then link all: the link has no fast-math flags."""
    files = {SOURCE: request.source.encode("utf-8", "replace"), HEADER: request.signature.header.encode()}
    commands, links, libraries = [], [], []
    for number, variant in enumerate(variants):
        own, compiled, library = f"own{number}.o", f"kernel{number}.o", f"kernel{number}.so"
        if variant.surroundings:
            files[own] = _compile_surroundings(variant.surroundings, request.flags.compile_flags)
            files[EXPORTS_FILE] = EXPORTS.encode()
        flags = (*request.flags.compile_flags, *variant.compile_flags, "-fPIC", *_MESSAGES)
        commands.append((*flags, "-include", HEADER, "-c", SOURCE, "-o", compiled))
        objects = [compiled, *([own] if variant.surroundings else ())]
        if assembly := request.find_assembly(variant):
            objects.append(f"program{number}.s")
            files[objects[-1]] = assembly.encode()
        links.append((*objects, "-o", library, *request.flags.link_flags, *variant.link_flags))
        libraries.append(library)
    return CompileOrder(files, (*commands, *links), libraries[0], libraries[1:])


class _SurroundingsError(Exception):
    """Our own code does not compile here."""


@cache
def _compile_surroundings(text: str, flags: tuple[str, ...]) -> bytes:
    """The object of what a variant adds, made once a process. Raises _SurroundingsError, which is not cached.

    With the flags of the program, so that those which this compiler does not have are not charged to programs.
    """
    result = run_compiler(CompileOrder({"own.c": text.encode()}, ((*flags, *_OWN_FLAGS),), "own.o"))
    if isinstance(result, Artefact):
        return result.data
    reason = result.reason if isinstance(result, CompileFailure) else " ".join(result.messages.split())[:300]
    raise _SurroundingsError(f"the compiler does not take what programs are built with: {reason}")
