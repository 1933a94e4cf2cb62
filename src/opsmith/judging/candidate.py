"""What a candidate's process does: it runs one program on the inputs that it is sent, until it is killed.

It is forked from a nursery, so that it has never held a task or an expected value, and is confined before it sees the
program's first line or loads an artefact. Inputs and outputs lie in its arena. Its answers are a tag with the size of
the outputs, or the text of an error; they can say nothing that the program could not have computed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opsmith.running.arena import Arena, Buffer
from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets import Hosted, Loaded, get_target
from opsmith.targets.faults import fault_of

READY, BROKEN, OUTPUTS, ERROR = b"ready", b"broken", b"=", b"!"
SIZE = struct.Struct("!Q")  # of inputs, as they are announced, and of outputs, behind OUTPUTS
LONGEST_ERROR = 2000  # characters

Execute = Callable[[memoryview], Buffer]  # inputs -> outputs


def serve_candidate(fds: Sequence[int], sandbox: Sandbox) -> None:
    """The first message names target and program; READY is the answer once the process is confined.

    `fds`: its socket, its arena and the artefacts of the program. BROKEN and words are the answer where the target
    itself fails before that.
    """
    fd, arena = fds[0], Arena(fds[1])
    request = json.loads(read_frame(fd) or b"{}")
    try:
        execute, runtime = _load_program(request, fds[2:])
    except Exception as error:
        write_frame(fd, BROKEN + _shorten_text(str(fault_of(request["target"], error, "runtime_paths").given)))
        return
    confine_candidate(sandbox, runtime, request["threads"])
    write_frame(fd, READY)
    with contextlib.suppress(OSError):  # the program has closed our socket
        while (size := read_frame(fd)) is not None:
            write_frame(fd, _run_program(execute, arena, *SIZE.unpack(size)))


def _load_program(request: dict[str, Any], artefacts: Sequence[int]) -> tuple[Execute, list[Path]]:
    """What executes it, and what it may read."""
    target = get_target(request["target"])
    if isinstance(target, Loaded):
        die_of_signals()
        paths = {name: Path(f"/proc/self/fd/{fd}") for name, fd in zip(request["artefacts"], artefacts, strict=True)}
        return partial(target.execute_artefacts, paths), list(target.runtime_paths())
    assert isinstance(target, Hosted)
    return partial(_execute_source, target, request["source"]), list(target.runtime_paths())


def _execute_source(target: Hosted, source: str, inputs: memoryview) -> bytes:
    return target.execute_program(source, bytes(inputs))


def die_of_signals() -> None:
    """What Python ignores or turns into exceptions ends a process of machine code, as it does elsewhere."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _run_program(execute: Execute, arena: Arena, size: int) -> bytes:
    try:
        outputs = execute(arena.view_blobs([size])[0].toreadonly())
        return OUTPUTS + SIZE.pack(*arena.write_blobs([outputs]))
    except BaseException as error:  # SystemExit and its like too: whatever it is, the program raised it
        return ERROR + _shorten_text(_describe_error(error))


def _describe_error(error: BaseException) -> str:
    with contextlib.suppress(BaseException):  # its text is the program's as well
        return f"{type(error).__name__}: {error}"
    return type(error).__name__


def _shorten_text(text: str) -> bytes:
    return text[:LONGEST_ERROR].encode(errors="replace")
