"""What measures right programs: this machine's service, one on a cluster, or a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import SpeedReport
from opsmith.records import Task


class Measurer(Protocol):
    """A service beside `Judge`."""

    def explain_lack(self, task: Task) -> str:
        """Why it measures no program of the task's target; "": it does."""
        ...

    def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        """A report for each shape set of the order that was not measured. What fails is a reason in a report.

        Raises VerifierError where not even that can be said.
        """
        ...
