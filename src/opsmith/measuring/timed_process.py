"""What a process does in which programs are timed: it calls them on the slots that it is sent, and reads the clock.

It is confined before it loads an artefact, as for a verdict. Two programs may share it. Inputs and outputs lie in its
arena, where we put them and look at them; it knows neither the task nor an expected value. The clock that it reads is
its own: whoever controls the process can forge what it says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from opsmith.judging.candidate import BROKEN, READY, die_of_signals
from opsmith.running.arena import Arena
from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets.native.calls import ProgramCaller
from opsmith.timing.engine import NUMBER, SLOT_MEMORY


def serve_timed(fds: Sequence[int], sandbox: Sandbox) -> None:
    """The first message says what is called; READY is the answer once it is loaded, or BROKEN and words.

    `fds`: its socket, its arena and the artefacts in the order of their names.
    """
    fd, arena = fds[0], Arena(fds[1])
    request = json.loads(read_frame(fd) or b"{}")
    die_of_signals()
    confine_candidate(sandbox, (), request["threads"])
    try:
        paths = {name: f"/proc/self/fd/{fd}" for name, fd in zip(request["artefacts"], fds[2:], strict=True)}
        caller = ProgramCaller(request, paths, arena.view_blobs([SLOT_MEMORY])[0])
    except (OSError, AttributeError) as error:
        write_frame(fd, BROKEN + str(error).encode(errors="replace")[:1000])
        return
    write_frame(fd, READY)
    while (message := read_frame(fd)) is not None:
        write_frame(fd, NUMBER.pack(caller.time_calls(message)))
