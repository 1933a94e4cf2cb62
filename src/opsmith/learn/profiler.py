"""What says why programs are as fast as they are: this machine's profilers, or a test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from opsmith.profiling.profiler import ProfileSubject
from opsmith.records import ProfileReport, Task

Warn = Callable[[str], None]


class ProfileSource(Protocol):
    """A service beside `Measurer`."""

    def explain_lacks(self, task: Task) -> tuple[str, ...]:
        """What profilers for programs of the task need and this machine lacks. Raises UsageError for a profiler that
        there is not."""
        ...

    async def make_profiles(self, subject: ProfileSubject, warn: Warn) -> list[ProfileReport]:
        """All that there is to say of a right program. A profiler that fails says nothing, and why is warned of."""
        ...
