"""What a process does in which programs are timed: it calls them on the slots that it is sent, and reads the clock.

It is confined before it loads an artefact, as for a verdict. Two programs may share it. Inputs and outputs lie in its
arena, where we put them and look at them; it knows neither the task nor an expected value. The clock that it reads is
its own: whoever controls the process can forge what it says.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from opsmith.judging.candidate import BROKEN, READY, die_of_signals
from opsmith.running.arena import CAPACITY, Arena
from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets.native.driver import DRIVER, PROCESSOR_CLOCK, TIME_CALLS, WALL_CLOCK
from opsmith.targets.native.signature import FUNCTION

PLACE = struct.Struct("<q")  # the number of the program, then where each slot begins; the answer is nanoseconds
_LOCAL = 2  # RTLD_NOW | RTLD_LOCAL of dlfcn.h


class _Number(ctypes.Union):
    _fields_ = (("whole", ctypes.c_int64), ("real", ctypes.c_double))


def serve_timed(fds: Sequence[int], sandbox: Sandbox) -> None:
    """The first message says what is called; READY is the answer once it is loaded, or BROKEN and words.

    `fds`: its socket, its arena and the artefacts in the order of their names.
    """
    fd, arena = fds[0], Arena(fds[1])
    request = json.loads(read_frame(fd) or b"{}")
    die_of_signals()
    confine_candidate(sandbox, (), request["threads"])
    try:
        caller = ProgramCaller(request, fds[2:], arena.view_blobs([CAPACITY])[0])
    except (OSError, AttributeError) as error:
        write_frame(fd, BROKEN + str(error).encode(errors="replace")[:1000])
        return
    write_frame(fd, READY)
    while (message := read_frame(fd)) is not None:
        write_frame(fd, PLACE.pack(caller.time_calls(message)))


class ProgramCaller:
    """The loaded programs and the loop that calls them."""

    def __init__(self, request: Mapping[str, Any], artefacts: Sequence[int], memory: memoryview) -> None:
        """`request`: `artefacts`, the names of what the descriptors are of; `sides`, the programs; `places`, `numbers`
        and `threads`. Raises OSError or AttributeError where one cannot be loaded."""
        paths = {name: f"/proc/self/fd/{fd}" for name, fd in zip(request["artefacts"], artefacts, strict=True)}
        self._driver = ctypes.CDLL(paths.pop(DRIVER), mode=_LOCAL)[TIME_CALLS]
        self._driver.restype = ctypes.c_int64
        libraries = {name: ctypes.CDLL(path, mode=_LOCAL) for name, path in paths.items()}  # in the order of the names
        if request["threads"] > 1:
            for library in libraries.values():
                getattr(library, "omp_set_num_threads", _set_nothing)(request["threads"])  # absent: it starts none
        self._programs = [
            ctypes.cast(libraries[name][FUNCTION], ctypes.c_void_p) if name in libraries else None
            for name in request["sides"]
        ]
        self._memory = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._places = (ctypes.c_int64 * len(request["places"]))(*request["places"])
        self._numbers = (_Number * max(1, len(request["numbers"])))(*map(_make_number, request["numbers"]))
        self._clock = WALL_CLOCK if request["threads"] > 1 else PROCESSOR_CLOCK

    def time_calls(self, message: bytes) -> int:
        """Nanoseconds of one call for each slot."""
        (side,) = PLACE.unpack_from(message)
        count = len(message) // PLACE.size - 1
        slots = (ctypes.c_int64 * count).from_buffer_copy(message, PLACE.size)
        arguments = (slots, ctypes.c_int64(count), self._places, self._numbers, self._clock)
        elapsed: int = self._driver(self._programs[side], ctypes.c_void_p(self._memory), *arguments)
        return elapsed


def _set_nothing(threads: int) -> None:
    pass


def _make_number(value: float) -> _Number:
    return _Number(whole=value) if isinstance(value, int) else _Number(real=value)
