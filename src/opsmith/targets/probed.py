"""Devices that programs of a language are judged or timed on, and what is missing for those that are not here.

A language says them in a module `probing` of its folder, whose `probe_timed()` and `probe_judged()`, each where there
is one, are called in a process of their own, with a deadline, so that a driver that hangs or crashes hangs nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

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


class Emulated(Protocol):
    """A language whose programs are judged by a program of ours on the processor."""

    name: str

    def explain_lack(self) -> str: ...

    def describe_toolchain(self) -> str: ...


def probe_emulator(language: Emulated, what: str = "an emulator on the processor") -> Iterator[ProbedDevice]:
    """For `probe_judged`."""
    if lack := language.explain_lack():
        yield ProbedDevice(f"{language.name}:emulated", "", what, lacks=(lack,))
    else:
        yield ProbedDevice(f"{language.name}:emulated", JUDGED, what, compiler=language.describe_toolchain())
