"""Orders: what is to be measured of a right program, who fills them, and the name of each measurement.

A target that is compiled says times, beside the task's own program; one with a cost model or a simulator says cycles.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from opsmith.measuring.objectives import is_carried_only, list_figures
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedMeasurement, SpeedReport
from opsmith.records import Candidate, Task


@dataclass(frozen=True)
class SpeedKey:
    """What a measurement is of, and how: of two with equal keys one is enough."""

    task: str  # its id
    program: str  # Candidate.id, or the name of a baseline
    partner: str  # the same; "": the time stands alone
    shape_set: str
    device: str
    protocol: str
    grade: MeasuringGrade


@dataclass(frozen=True)
class SpeedOrder:
    """A right program whose speed is asked for at all sizes that its task is timed at."""

    task: Task
    source: str
    grade: MeasuringGrade
    measured: frozenset[SpeedKey] = frozenset()  # what is there already
    partner: str | None = None  # the source of another partner than the task's own program
    shape_sets: tuple[str, ...] = ()  # of the task, by name; (): all that its programs are timed at
    figures: tuple[str, ...] = ()  # of `objectives.list_figures`; (): the first that can be said

    def find_partner(self) -> tuple[str, str] | None:
        """Whom the program is compared with: its name and source; None: nobody but the program itself is there."""
        own = self.task.impl
        partner = own if self.partner is None else self.partner
        if partner is None or Candidate(partner).id == Candidate(self.source).id:
            return None
        return (PLAIN if partner == own else Candidate(partner).id), partner


class Measurer(Protocol):
    """What fills orders: this machine's service, one on a cluster, or a test's own."""

    def explain_lack(self, task: Task) -> str:
        """Why it measures no program of the task's target; "": it does."""

    def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        """A report for each shape set of the order that was not measured. What fails is a reason in a report.

        Raises VerifierError where not even that can be said.
        """


def name_measurement(task: str, measurement: SpeedMeasurement) -> SpeedKey:
    """The key of a measurement of a program for the task of that id."""
    partner = measurement.ratio.partner if measurement.ratio is not None else measurement.sought_partner
    place = (measurement.shape_set, measurement.device, measurement.protocol, measurement.grade)
    return SpeedKey(task, measurement.program, partner, *place)


def explain_lack_of_figures(task: Task) -> str:
    """Why nothing can be measured of programs of the task's target; "": something can."""
    if list_figures(task) or is_carried_only(task):
        return ""
    return f"target {task.target}: its programs can neither be timed here nor counted in cycles: nothing is measured"
