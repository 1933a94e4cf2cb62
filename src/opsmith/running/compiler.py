"""One compile of a source of others, by the C compiler, in a confined process of its own (`commands`).

It may read and execute the toolchain, write in one temporary folder and start processes. What comes back is one of
three: bytes of an artefact, a refusal (what the compiler said, or the limit that the source broke), or a failure of
ours, which is no fault of the source. What the messages mean is the caller's to say. A refusal counts only where the
same toolchain compiles a right program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands
from opsmith.running.toolchain import COMPILER, Toolchain, explain_no_compiler, find_toolchain

SOURCE_BYTES = 1 << 20  # all files that one compile is given
DEFAULT_LIMITS = CommandLimits()


@dataclass(frozen=True)
class CompileOrder:
    """Files by name, the driver's arguments of each command in turn, and the names of the files that they make."""

    files: Mapping[str, bytes]
    commands: Sequence[Sequence[str]]
    output: str
    further: Sequence[str] = ()  # outputs beside that one
    compiler: str = COMPILER  # as `find_toolchain` knows it


@dataclass(frozen=True)
class Artefact:
    """What a compiler made."""

    data: bytes
    messages: str = ""  # warnings and remarks, as printed
    further: Mapping[str, bytes] = field(default_factory=dict)  # by name: the other outputs


@dataclass(frozen=True)
class CompileRefusal:
    """The source is at fault: what the compiler said, and the limit that was broken."""

    messages: str
    limit: str = ""  # "10 s of processor time"; "": none, the messages say it


@dataclass(frozen=True)
class CompileFailure:
    """Something of ours is at fault; the source is neither right nor wrong."""

    reason: str


CompileResult = Artefact | CompileRefusal | CompileFailure


def run_compiler(order: CompileOrder, limits: CommandLimits = DEFAULT_LIMITS) -> CompileResult:
    """Compile. Raises nothing for a source, whatever it holds."""
    size = sum(map(len, order.files.values()))
    if size > SOURCE_BYTES:
        return CompileRefusal("", f"{SOURCE_BYTES} bytes of source")
    toolchain = find_toolchain(order.compiler)
    if toolchain is None:
        return CompileFailure(explain_no_compiler(order.compiler))
    result = _compile_files(toolchain, order, limits)
    try:
        if isinstance(result, CompileRefusal):
            _require_sound(toolchain, limits)
    except _ToolchainFault as fault:
        return CompileFailure(str(fault))
    return result


class _ToolchainFault(Exception):
    """It refuses a right program, so that its refusals say nothing."""


@cache
def _require_sound(toolchain: Toolchain, limits: CommandLimits) -> None:
    """Compile a right program, once it has refused another. Raises _ToolchainFault, which is not cached."""
    source = b"#include <math.h>\nfloat probe(float x) { return sqrtf(x); }\n"
    command = ("-shared", "-fPIC", "probe.c", "-o", "probe.so", "-lm")
    result = _compile_files(toolchain, CompileOrder({"probe.c": source}, (command,), "probe.so"), limits)
    if isinstance(result, CompileFailure):
        raise _ToolchainFault(result.reason)
    if isinstance(result, CompileRefusal):
        reason = (result.limit or result.messages.strip()).splitlines()[-1:]
        raise _ToolchainFault(f"the compiler refuses a right program too: {' '.join(reason)[:200]}")


def _compile_files(toolchain: Toolchain, order: CompileOrder, limits: CommandLimits) -> CompileResult:
    commands = [[str(toolchain.driver), *arguments] for arguments in order.commands]
    result = run_commands(
        CommandOrder(order.files, commands, [order.output, *order.further], toolchain.environment, toolchain.readable),
        limits,
    )
    if isinstance(result, CommandFailure):
        return CompileFailure(result.reason)
    return _read_result(order, limits, result)


def _read_result(order: CompileOrder, limits: CommandLimits, result: CommandResult) -> CompileResult:
    if result.is_late:
        return CompileFailure(f"the compiler had not ended after {limits.seconds:g} s; is the machine too busy?")
    if not result.is_ended_well:
        return _judge_failure(limits, result)
    if result.files.keys() != {order.output, *order.further}:
        return CompileFailure("the compiler left no plain file")
    further = {name: result.files[name] for name in order.further}
    return Artefact(result.files[order.output], result.messages, further)


def _judge_failure(limits: CommandLimits, result: CommandResult) -> CompileResult:
    """Whose fault is it that a command failed?"""
    if not result.limit:
        if any(words in result.messages for words in ("out of memory", "memory exhausted", "annot allocate memory")):
            return CompileRefusal(result.messages, f"{limits.memory} bytes of memory")
        if "Killed signal terminated" in result.messages:
            return CompileFailure("the compiler was killed by somebody else; is there memory left?")
    return CompileRefusal(result.messages, result.limit)
