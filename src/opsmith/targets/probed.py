"""Devices that programs of a language are judged or timed on, and what is missing for those that are not here.

A language says them in a module `probing` of its folder, whose `probe_timed()` and `probe_judged()` are called in a
process of their own, with a deadline, so that a driver that hangs or crashes hangs nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

TIMED, JUDGED = "judged and timed", "judged"


@dataclass(frozen=True)
class ProbedDevice:
    """A device that programs of some language run on, or why there is none."""

    device: str  # cuda:0, cuda:emulated, wgpu:llvmpipe
    use: str  # what it is good for: TIMED, JUDGED; "": nothing, as `lacks` says
    name: str = ""
    architecture: str = ""
    driver: str = ""
    memory: int | None = None  # bytes
    compiler: str = ""
    lacks: tuple[str, ...] = ()  # what is missing, each with what to try
    digest: str = ""  # as measurements name it; "": nothing is timed on it
