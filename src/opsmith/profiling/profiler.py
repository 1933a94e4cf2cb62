"""What a profiler is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from opsmith.errors import OpsmithError
from opsmith.measuring.record import SpeedReport
from opsmith.records import TEXT, ProfileReport, Task

Warn = Callable[[str], None]
LONGEST_TEXT = 8000  # characters of one report: an agent reads several


class ProfilingError(OpsmithError):
    """A profiler has nothing to say of this program, for a reason that is no fault of the program."""


@dataclass(frozen=True)
class ProfileSubject:
    """The program that is looked at, and how fast it was measured to be."""

    task: Task
    source: str
    speeds: tuple[SpeedReport, ...] = ()


class Profiler(Protocol):
    """It measures nothing and judges nothing: it says of a right program what makes it as fast as it is."""

    name: str  # also the kind of its reports
    is_quick: bool  # at most some seconds: what is not must be named

    def fits_task(self, task: Task) -> bool:
        """Whether it is made for programs of the task's target."""

    def explain_lack(self, task: Task) -> str:
        """What it needs and this machine lacks, in one sentence that says what to try; "": nothing."""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        """Raises OpsmithError, or OSError, where it fails."""


class ProfileSource(Protocol):
    """All profilers of a machine as one service, or a test's own."""

    def explain_lacks(self, task: Task) -> tuple[str, ...]:
        """What profilers for programs of the task need and this machine lacks. Raises UsageError for a profiler that
        there is not."""

    async def make_profiles(self, subject: ProfileSubject, warn: Warn) -> list[ProfileReport]:
        """All that there is to say of a right program. A profiler that fails says nothing, and why is warned of."""


def make_report(name: str, text: str) -> ProfileReport:
    """A text as a report, cut where it is longer than an agent should read."""
    if len(text) > LONGEST_TEXT:
        lines = text[:LONGEST_TEXT].splitlines()[:-1]
        text = "\n".join([*lines, f"(cut here: the whole text has {len(text)} characters)", ""])
    return ProfileReport(name, TEXT, text)
