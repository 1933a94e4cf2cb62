"""Builds the library that runs a program without a GPU: one confined run of a compiler, our headers, our runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.records import Diagnostic, printable
from opsmith.running.compiler import (
    Artefact,
    CompileFailure,
    CompileOrder,
    CompileRefusal,
    run_compiler,
)
from opsmith.running.toolchain import explain_no_compiler, find_toolchain
from opsmith.targets.gpu.emulator.dialect import EmulatedDialect
from opsmith.targets.gpu.emulator.running import EMULATED, ORDINARY
from opsmith.targets.gpu.emulator.source import (
    MAIN,
    MARK,
    MOST_SHARED,
    describe_argument,
    find_foreign,
    list_parameters,
    write_main,
)
from opsmith.targets.gpu.plan import BoundLaunch, BoundPlan
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.cache import BuildCache, BuildKey
from opsmith.targets.native.flags import find_isa
from opsmith.targets.programs import Build

KIND = "COMPILE"
MOST = 5  # findings of one build
LIBRARY = "kernel.so"

_FOLDER = Path(__file__).parent
_RUNTIME, _OBJECT, _SCRIPT = "opsmith_runtime.o", "opsmith_kernel.o", "layout.ld"
_SHARED_FLAGS = ("-std=gnu++17", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fvisibility=hidden")
_RUNTIME_FLAGS = (*_SHARED_FLAGS, "-O2", "-w", "-fno-builtin-memcmp", "-c", "emulator.cpp", "-o", _RUNTIME)
_KERNEL_FLAGS = (
    *_SHARED_FLAGS,
    "-O1",
    "-nostdinc",
    "-I.",
    "-w",
    "-gdwarf-4",
    "-g1",
    "-fsanitize=thread,alignment,bounds",
    "-fno-sanitize=vptr",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-fdata-sections",
    "-fno-threadsafe-statics",
    "-fno-asynchronous-unwind-tables",
    "-fmax-errors=8",
    "-c",
    MAIN,
    "-o",
    _OBJECT,
)
WATCHED_FLAGS, ORDINARY_FLAGS = ("-ftrivial-auto-var-init=pattern",), ()  # what locals hold at first
_LINK_FLAGS = ("-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", f"-Wl,-T,{_SCRIPT}", "-lm")
_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Unemulated:
    """The program may be right; the emulator cannot run it."""

    reason: str  # begins with `not emulated: `


EmulatedBuild = Artefact | BuildRefusal | Unemulated | CompileFailure


def build_emulated(
    dialect: EmulatedDialect,
    source: str,
    plan: BoundPlan,
    cache_: BuildCache | None = None,
    flags: Sequence[str] = WATCHED_FLAGS,
) -> EmulatedBuild:
    """The library of a program that its own compiler has accepted."""
    foreign = find_foreign(dialect, source)
    if foreign is not None:
        return Unemulated(f"not emulated: line {foreign[0]}: {foreign[1]}")
    toolchain = find_toolchain(dialect.compiler)
    if toolchain is None:
        return CompileFailure(explain_no_compiler(dialect.compiler))
    key = _make_key(dialect, source, plan, toolchain.version, flags)
    library = cache_.fetch(key) if cache_ is not None else None
    if library is not None:
        return Artefact(library)
    result = _compile_program(dialect, source, plan, flags)
    if cache_ is not None and isinstance(result, Artefact):
        cache_.store(key, result.data)
    return result


def build_libraries(
    dialect: EmulatedDialect, source: str, plan: BoundPlan, store: BuildCache | None, is_kept: bool, needed: str
) -> Mapping[str, bytes] | Build:
    """By what each is for, or a build with errors or a failure. `is_kept`: also one for passes in which locals hold
    what they happen to; `needed`: what judges programs that are not emulated."""
    libraries = {}
    for name, flags in {EMULATED: WATCHED_FLAGS, **({ORDINARY: ORDINARY_FLAGS} if is_kept else {})}.items():
        result = build_emulated(dialect, source, plan, store, flags=flags)
        if isinstance(result, Unemulated):
            return Build({}, failure=result.reason, needed=needed)
        if isinstance(result, BuildRefusal):
            return Build({}, errors=result.errors)
        if not isinstance(result, Artefact):
            return Build({}, failure=result.reason)
        libraries[name] = result.data
    return libraries


def _compile_program(dialect: EmulatedDialect, source: str, plan: BoundPlan, flags: Sequence[str]) -> EmulatedBuild:
    runtime = _compile_runtime(dialect.compiler)
    if isinstance(runtime, CompileFailure):
        return runtime
    files = {
        **_read_headers(dialect.headers),
        dialect.program: dialect.rewrite(source).encode("utf-8", "replace"),
        MAIN: write_main(dialect, source, plan).encode(),
        _RUNTIME: runtime.data,
    }
    commands = [
        (*_KERNEL_FLAGS, *dialect.flags, *flags, find_isa().flag),
        (_OBJECT, _RUNTIME, "-o", LIBRARY, *_LINK_FLAGS),
    ]
    if (check := dialect.check) is not None:
        files[check.file] = check.write(source).encode("utf-8", "replace")
        commands.insert(0, (*check.flags, check.file))
    result = run_compiler(CompileOrder(files, commands, LIBRARY, compiler=dialect.compiler))
    return _explain_refusal(dialect, result, source, plan) if isinstance(result, CompileRefusal) else result


def _make_key(
    dialect: EmulatedDialect, source: str, plan: BoundPlan, compiler: str, own_flags: Sequence[str]
) -> BuildKey:
    texts = [dialect.rewrite(source), write_main(dialect, source, plan)]
    texts += [data.decode() for data in _read_headers(dialect.headers).values()]
    texts.append((_FOLDER / "emulator.cpp").read_text(encoding="utf-8"))
    check = dialect.check.flags if dialect.check is not None else ()
    flags = " ".join(
        (*check, *_RUNTIME_FLAGS, *_KERNEL_FLAGS, *dialect.flags, *own_flags, find_isa().flag, *_LINK_FLAGS)
    )
    return BuildKey("", f"{dialect.name} emulator", "\0".join(texts), flags, compiler)


@cache
def _read_headers(own: Path) -> dict[str, bytes]:
    """All files of ours that a program is compiled and linked with, by name; `own`: the folder of its dialect."""
    paths = (path for folder in (_FOLDER / "headers", own) for path in sorted(folder.iterdir()))
    headers = {path.name: path.read_bytes() for path in paths}
    sections = "".join(f"    *(.bss.opsmith_shared_{n})\n    . += 256;\n" for n in range(MOST_SHARED))
    script = (_FOLDER / _SCRIPT).read_text(encoding="utf-8").replace("SHARED_SECTIONS\n", sections)
    return {**headers, _SCRIPT: script.encode()}


def _compile_runtime(compiler: str) -> Artefact | CompileFailure:
    """The runtime's object, made once a process; a failure is not kept."""
    try:
        return _compile_runtime_once(compiler)
    except _RuntimeFault as error:
        return CompileFailure(str(error))


class _RuntimeFault(Exception):
    """Our own code does not compile here."""


@cache
def _compile_runtime_once(compiler: str) -> Artefact:
    files = {"emulator.cpp": (_FOLDER / "emulator.cpp").read_bytes()}
    result = run_compiler(CompileOrder(files, ((*_RUNTIME_FLAGS, find_isa().flag),), _RUNTIME, compiler=compiler))
    if isinstance(result, Artefact):
        return result
    words = result.reason if isinstance(result, CompileFailure) else " ".join(result.messages.split())[:300]
    raise _RuntimeFault(f"the compiler does not take the emulator's runtime: {words}")


# -- what g++ refuses


def _explain_refusal(
    dialect: EmulatedDialect, refusal: CompileRefusal, source: str, plan: BoundPlan
) -> BuildRefusal | Unemulated:
    if dialect.check is not None and f"{dialect.check.file}:" in refusal.messages:
        return BuildRefusal(dialect.check.explain(refusal.messages, source))
    if dialect.check is not None and refusal.limit:
        actual = f"a program that takes {dialect.compiler} more than its limit"
        remedy = "smaller constant arrays, fewer templates and macros"
        return BuildRefusal((Diagnostic(KIND, "compiler", actual, f"at most {refusal.limit}", remedy),))
    errors = list(_ERROR.finditer(refusal.messages))
    findings = tuple(dict.fromkeys(_list_mismatches(dialect, errors, source, plan)))[:MOST]
    if findings:
        return BuildRefusal(findings)
    if refusal.limit:
        return Unemulated(f"not emulated: {dialect.compiler} took more than {refusal.limit}")
    own = [match for match in errors if match["file"] == dialect.program] or errors
    if not own:
        words = printable(" ".join(refusal.messages.split())[:200])
        return Unemulated(f"not emulated: {dialect.compiler} refuses the program: {words}")
    where = f"line {own[0]['line']}: " if own[0]["file"] == dialect.program else ""
    return Unemulated(f"not emulated: {where}{printable(own[0]['text'])[:200]}")


def _list_mismatches(
    dialect: EmulatedDialect, errors: Sequence[re.Match[str]], source: str, plan: BoundPlan
) -> Iterator[Diagnostic]:
    """Where the plan and a kernel disagree."""
    launches = {launch.line: launch for launch in plan.launches}
    lines = source.split("\n")
    for match in errors:
        launch = launches.get(int(match["line"]))
        if match["file"] == dialect.program and launch is not None:
            text = printable(lines[launch.line - 1].strip()[:300])
            yield _explain_mismatch(dialect, match["text"], launch, source, text)


def _explain_mismatch(
    dialect: EmulatedDialect, message: str, launch: BoundLaunch, source: str, text: str
) -> Diagnostic:
    where = f"launch {launch.kernel}"
    parameters = list_parameters(source, launch.kernel)
    if MARK not in message:
        remedy = f"define {dialect.kernel.format(launch.kernel)}, once and without a template"
        return Diagnostic(
            KIND, where, printable(message)[:200], "a kernel of that name", remedy, launch.line, None, text
        )
    if "another number of arguments" in message:
        actual = f"{len(launch.arguments)} arguments in args"
        expected = f"as many as {launch.kernel} takes" + (f": {', '.join(parameters)}" if parameters else "")
        return Diagnostic(KIND, where, actual, expected, "name them in the kernel's order", launch.line, None, text)
    for number, argument in enumerate(launch.arguments):
        words = describe_argument(dialect, argument)
        if f" takes {words} with " in message:
            parameter = parameters[number] if number < len(parameters) else "another type"
            actual = f"{words.split(',')[0]} for the parameter {parameter}"
            return Diagnostic(
                KIND, where, actual, words, "change the parameter, or the order of args", launch.line, None, text
            )
    return Diagnostic(KIND, where, printable(message)[:200], "arguments as the kernel takes them", "", launch.line)
