"""What a candidate's process does: it runs one program on the inputs that it is sent, until it is killed.

It is forked from the nursery, so that it has never held a task or an expected value, and is confined before it sees the
program's first line. Its answers are bytes with a tag in front, outputs or the text of an error; they can say nothing
that the program could not have computed.
"""

from __future__ import annotations

import contextlib
import json

from opsmith.targets import Executed, get_target
from opsmith.verification.channel import read_frame, write_frame
from opsmith.verification.sandbox import Sandbox, confine_candidate

READY, OUTPUTS, ERROR = b"ready", b"=", b"!"
LONGEST_ERROR = 2000  # characters


def serve(fd: int, sandbox: Sandbox) -> None:
    """The first message names target and program; READY is the answer once the process is confined."""
    told = json.loads(read_frame(fd) or b"{}")
    target = get_target(told["target"])
    assert isinstance(target, Executed)
    confine_candidate(sandbox, target.runtime())
    write_frame(fd, READY)
    while (inputs := read_frame(fd)) is not None:
        write_frame(fd, _answer(target, told["source"], inputs))


def _answer(target: Executed, source: str, inputs: bytes) -> bytes:
    try:
        return OUTPUTS + target.execute(source, inputs)
    except BaseException as error:  # SystemExit and its like too: whatever it is, the program raised it
        return ERROR + _words(error).encode(errors="replace")


def _words(error: BaseException) -> str:
    with contextlib.suppress(BaseException):  # its text is the program's as well
        return f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    return type(error).__name__
