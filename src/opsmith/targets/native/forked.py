"""A compiler that is a library of Python: imported once by a nursery, run in a confined fork of it for each program.

The nursery is started at the first question and ends with this process.
"""

from __future__ import annotations

import atexit
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from opsmith.errors import VerifierError
from opsmith.records import Diagnostic
from opsmith.running.compiler import CompileFailure
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.diagnostics import KIND

_LIMITS = Sandbox(memory=2 << 30)
_SECONDS, _LONGEST = 60.0, 1 << 24
_AT_ONCE = threading.Semaphore(2)


@dataclass(frozen=True)
class ForkedCompiler:
    """Which one; `place`: the module that holds it, whose `load` is called before the first fork and whose
    `serve_build` answers one request there."""

    name: str
    place: str
    remedy: str  # where it breaks down

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any] | BuildRefusal | CompileFailure:
        """What a confined fork answers; a refusal where the text ended it."""
        nursery = _open_nursery(self.place)
        with _AT_ONCE:
            try:
                if nursery.missing:
                    return CompileFailure(f"no program is compiled without isolation: {nursery.missing}")
                process = nursery.fork_candidate(_LIMITS, "")
            except VerifierError as error:
                return CompileFailure(str(error))
            ended, deadline = "", time.monotonic() + _SECONDS
            try:
                process.channel.send(json.dumps(request).encode(), deadline)
                answer = json.loads(process.channel.receive(_LONGEST, deadline))
                if isinstance(answer, dict):
                    return answer
            except TimeoutError:
                ended = f"takes more than {_SECONDS:g} s"
            except (EOFError, OSError, ValueError) as error:
                ended = "" if isinstance(error, EOFError | OSError) else "makes too large a program"
            finally:
                end = nursery.kill(process)
        if "could not be confined" in end:
            return CompileFailure(end)
        broken = f"a program on which {self.name} broke down: its process {end}"
        words = f"a program that {ended}" if ended else broken
        return BuildRefusal((Diagnostic(KIND, "compiler", words, "one that it can compile", self.remedy),))


@cache
def _open_nursery(place: str) -> Nursery:
    nursery = Nursery(Services(f"{place}:load", "", {"candidate": f"{place}:serve_build"}))
    atexit.register(nursery.close)
    return nursery
