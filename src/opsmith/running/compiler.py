"""One compile of a source of others: a confined process of its own that is gone, with its folder, when we return.

The third confinement beside a worker's and a candidate's. It may read and execute the toolchain, write in one temporary
folder and start processes; it has no network, no signals to others and no variables of the user. What comes back is one
of three: bytes of an artefact, a refusal (what the compiler said, or the limit that the source broke), or a failure of
ours, which is no fault of the source. What the messages mean is the caller's to say.

A refusal counts only where the same toolchain compiles a right program. Not limited is the number of processes, which
the kernel does not bind for root and counts per user for others. All of them are killed at the end, since none can
leave the process group. Should we be killed ourselves, the folder stays.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from opsmith.running import sandbox
from opsmith.running.compile_process import ProcessOrder
from opsmith.running.toolchain import NO_COMPILER, Toolchain, find_toolchain

_PACKAGES = str(Path(__file__).parents[2])  # where the child imports us from
_LOADER_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")  # what Python itself may need to start
_STACK = 64 << 20  # bytes; a compiler walks nested code with it
_CHUNK = 1 << 16  # bytes read at once
_REPORT_BYTES = 1 << 12
_DYING_S = 5.0  # for the end of what was killed


@dataclass(frozen=True)
class CompileLimits:
    """What one compile may use."""

    cpu_seconds: int = 10  # of processor time, each process
    seconds: float = 60.0  # until we give up, which is not charged to the source
    memory: int = 1 << 30  # bytes of addresses, each process
    file_bytes: int = 32 << 20  # each file that it writes, the artefact too
    source_bytes: int = 1 << 20  # all files that it is given
    message_bytes: int = 1 << 18
    open_files: int = 64


DEFAULT_LIMITS = CompileLimits()


@dataclass(frozen=True)
class CompileOrder:
    """Files by name, the driver's arguments of each command in turn, and the name of the file that they make."""

    files: Mapping[str, bytes]
    commands: Sequence[Sequence[str]]
    output: str


@dataclass(frozen=True)
class Artefact:
    """What a compiler made."""

    data: bytes
    messages: str = ""  # warnings and remarks, as printed


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


@dataclass(frozen=True)
class _Outcome:
    """What a process left: its report, its messages, and what ended it early."""

    report: bytes
    messages: str
    is_late: bool = False
    is_loud: bool = False


def run_compiler(order: CompileOrder, limits: CompileLimits = DEFAULT_LIMITS) -> CompileResult:
    """Compile. Raises nothing for a source, whatever it holds."""
    size = sum(map(len, order.files.values()))
    if size > limits.source_bytes:
        return CompileRefusal("", f"{limits.source_bytes} bytes of source")
    toolchain = find_toolchain()
    if toolchain is None:
        return CompileFailure(NO_COMPILER)
    if reason := sandbox.missing():
        return CompileFailure(f"no compiler is run on sources of others without isolation: {reason}")
    try:
        result = _compile_in_folder(toolchain, order, limits)
        if isinstance(result, CompileRefusal):
            _require_sound(toolchain, limits)
    except OSError as error:
        return CompileFailure(_describe_error(error))
    except _ToolchainFault as fault:
        return CompileFailure(str(fault))
    return result


class _ToolchainFault(Exception):
    """It refuses a right program, so that its refusals say nothing."""


@cache
def _require_sound(toolchain: Toolchain, limits: CompileLimits) -> None:
    """Compile a right program, once it has refused another. Raises _ToolchainFault and OSError."""
    source = b"#include <math.h>\nfloat probe(float x) { return sqrtf(x); }\n"
    command = ("-shared", "-fPIC", "probe.c", "-o", "probe.so", "-lm")
    result = _compile_in_folder(toolchain, CompileOrder({"probe.c": source}, (command,), "probe.so"), limits)
    if isinstance(result, CompileFailure):
        raise _ToolchainFault(result.reason)
    if isinstance(result, CompileRefusal):
        reason = (result.limit or result.messages.strip()).splitlines()[-1:]
        raise _ToolchainFault(f"the compiler refuses a right program too: {' '.join(reason)[:200]}")


def _compile_in_folder(toolchain: Toolchain, order: CompileOrder, limits: CompileLimits) -> CompileResult:
    folder = Path(tempfile.mkdtemp(prefix="opsmith-compile-")).resolve()
    try:
        for name, data in order.files.items():
            (folder / name).write_bytes(data)
        outcome = _run_process(toolchain, order, limits, folder)
        return _read_result(order, limits, outcome, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- the process


def _run_process(toolchain: Toolchain, order: CompileOrder, limits: CompileLimits, folder: Path) -> _Outcome:
    """Start it, hear it to its end or a limit, and kill all that is left of it."""
    deadline = time.monotonic() + limits.seconds
    ours, theirs = os.pipe()
    with open(ours, "rb", 0) as report:
        try:
            process = _start_process(_write_order(toolchain, order, limits, folder, theirs), folder, theirs)
        finally:
            os.close(theirs)
        try:
            messages, is_late, is_loud = _read_messages(process, deadline, limits.message_bytes)
        finally:
            _end_process(process)
        return _Outcome(report.read(_REPORT_BYTES), messages, is_late, is_loud)


def _write_order(
    toolchain: Toolchain, order: CompileOrder, limits: CompileLimits, folder: Path, report: int
) -> dict[str, object]:
    resources = {
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_AS": limits.memory,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_STACK": _STACK,
        "RLIMIT_CORE": 0,
    }
    return asdict(
        ProcessOrder(
            [[str(toolchain.driver), *arguments] for arguments in order.commands],
            {**toolchain.environment, "TMPDIR": str(folder)},
            str(folder),
            [str(path) for path in toolchain.readable],
            resources,
            report,
        )
    )


def _start_process(order: dict[str, object], folder: Path, report: int) -> subprocess.Popen[bytes]:
    variables = {name: os.environ[name] for name in _LOADER_VARIABLES if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-S", "-P", "-m", "opsmith.running.compile_process", json.dumps(order)],
        env=variables | {"PYTHONPATH": _PACKAGES, "LC_ALL": "C"},
        cwd=folder,
        pass_fds=[report],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, which is killed as one
    )


def _read_messages(process: subprocess.Popen[bytes], deadline: float, most: int) -> tuple[str, bool, bool]:
    """What it prints until it closes the pipe; was it too late, was it too much?"""
    assert process.stderr is not None
    pipe, printed = process.stderr.fileno(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while len(printed) <= most:
            if not selector.select(max(deadline - time.monotonic(), 0)):
                return _decode_messages(printed), True, False
            chunk = os.read(pipe, _CHUNK)
            if not chunk:
                return _decode_messages(printed), False, False
            printed += chunk
    return _decode_messages(printed[:most]), False, True


def _decode_messages(printed: bytes | bytearray) -> str:
    return printed.decode(errors="replace")


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill the group before its leader is reaped: until then its number cannot be another's.

    A leader that closed its messages has written its report. The others have ended once nobody holds that pipe: only
    then is nothing written any longer.
    """
    assert process.stderr is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with process.stderr as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(_DYING_S) and os.read(pipe.fileno(), _CHUNK):
            pass
    process.wait()


# -- what it left


def _read_result(order: CompileOrder, limits: CompileLimits, outcome: _Outcome, folder: Path) -> CompileResult:
    if outcome.is_loud:
        return CompileRefusal(outcome.messages, f"{limits.message_bytes} bytes of messages")
    if outcome.is_late:
        return CompileFailure(f"the compiler had not ended after {limits.seconds:g} s; is the machine too busy?")
    report = _read_report(outcome)
    if "codes" not in report:
        return CompileFailure(str(report.get("unconfined", "the compiler's process ended without an answer")))
    codes = report["codes"]
    assert isinstance(codes, list)
    if any(codes):
        return _judge_failure(limits, outcome.messages, int(codes[-1]), folder)
    return _read_artefact(folder / order.output, limits, outcome.messages)


def _read_report(outcome: _Outcome) -> dict[str, object]:
    try:
        report: dict[str, object] = json.loads(outcome.report)
    except ValueError:
        return {"unconfined": f"the compiler's process could not be started: {outcome.messages.strip()[-200:]}"}
    return report


def _judge_failure(limits: CompileLimits, messages: str, code: int, folder: Path) -> CompileResult:
    """Whose fault is it that a command failed? The driver says how its own child was ended, by the names of signals."""
    if shutil.disk_usage(folder).free < limits.file_bytes:
        return CompileFailure(f"the disk of temporary files is nearly full; {limits.file_bytes} bytes are needed")
    broken_limits = {
        signal.SIGXCPU: ("CPU time limit exceeded", f"{limits.cpu_seconds} s of processor time"),
        signal.SIGXFSZ: ("File size limit exceeded", f"{limits.file_bytes} bytes in one file"),
    }
    for number, (words, limit) in broken_limits.items():
        if code == -number or words in messages:
            return CompileRefusal(messages, limit)
    if any(words in messages for words in ("out of memory", "memory exhausted", "annot allocate memory")):
        return CompileRefusal(messages, f"{limits.memory} bytes of memory")
    if code == -signal.SIGKILL or "Killed signal terminated" in messages:
        return CompileFailure("the compiler was killed by somebody else; is there memory left?")
    return CompileRefusal(messages)


def _read_artefact(path: Path, limits: CompileLimits, messages: str) -> CompileResult:
    """The bytes of a plain file of sensible size; a link is not followed."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return CompileFailure("the compiler left no plain file")
        data = file.read(limits.file_bytes + 1)
    if len(data) > limits.file_bytes:
        return CompileRefusal(messages, f"{limits.file_bytes} bytes in one file")
    return Artefact(data, messages)


def _describe_error(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of temporary files is full: {os.strerror(error.errno)}"
    return f"the compiler could not be started: {error.strerror or error}"
