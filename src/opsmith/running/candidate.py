"""What a candidate's process does: it runs one program on the inputs that it is sent, until it is killed.

It is forked from the nursery, so that it has never held a task or an expected value, and is confined before it sees the
program's first line. Its answers are bytes with a tag in front, outputs or the text of an error; they can say nothing
that the program could not have computed.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets import Hosted, get_target
from opsmith.targets.faults import fault_of

READY, BROKEN, OUTPUTS, ERROR = b"ready", b"broken", b"=", b"!"
LONGEST_ERROR = 2000  # characters


def serve_candidate(fd: int, sandbox: Sandbox) -> None:
    """The first message names target and program; READY is the answer once the process is confined.

    BROKEN and words are the answer where the target itself fails before that.
    """
    request = json.loads(read_frame(fd) or b"{}")
    try:
        target, runtime = _load_target(request["target"])
    except Exception as error:
        write_frame(fd, BROKEN + _shorten_text(str(fault_of(request["target"], error, "runtime_paths").given)))
        return
    confine_candidate(sandbox, runtime)
    write_frame(fd, READY)
    while (inputs := read_frame(fd)) is not None:
        write_frame(fd, _run_program(target, request["source"], inputs))


def _load_target(name: str) -> tuple[Hosted, list[Path]]:
    """The target, and what its candidates may read."""
    target = get_target(name)
    assert isinstance(target, Hosted)
    return target, list(target.runtime_paths())


def _run_program(target: Hosted, source: str, inputs: bytes) -> bytes:
    try:
        return OUTPUTS + target.execute_program(source, inputs)
    except BaseException as error:  # SystemExit and its like too: whatever it is, the program raised it
        return ERROR + _shorten_text(_describe_error(error))


def _describe_error(error: BaseException) -> str:
    with contextlib.suppress(BaseException):  # its text is the program's as well
        return f"{type(error).__name__}: {error}"
    return type(error).__name__


def _shorten_text(text: str) -> bytes:
    return text[:LONGEST_ERROR].encode(errors="replace")
