"""Orders: what is to be measured of a right program, the name of each measurement, and which programs can be measured.

A target that is compiled says times, beside the task's own program; one with a cost model or a simulator says cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.records import Candidate, Task
from opsmith.targets import Commanded, get_target
from opsmith.targets.protocols import Costed, Stating, Timed


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

    def find_partner(self) -> str | None:
        """The task's own program, unless it is the one that is measured."""
        impl = self.task.impl
        return None if impl is None or Candidate(impl).id == Candidate(self.source).id else impl


def name_measurement(task: str, measurement: SpeedMeasurement) -> SpeedKey:
    """The key of a measurement of a program for the task of that id."""
    partner = measurement.ratio.partner if measurement.ratio is not None else measurement.sought_partner
    place = (measurement.shape_set, measurement.device, measurement.protocol, measurement.grade)
    return SpeedKey(task, measurement.program, partner, *place)


def explain_lack_of_figures(task: Task) -> str:
    """Why nothing can be measured of programs of the task's target; "": something can."""
    if is_timed(task) or is_counted(task):
        return ""
    return f"target {task.target}: its programs can neither be timed here nor counted in cycles: nothing is measured"


def is_timed(task: Task) -> bool:
    """Whether programs of the task's target are timed on a device."""
    target = get_target(task.target)
    return isinstance(target, Timed) and isinstance(target, Stating)


def is_counted(task: Task) -> bool:
    """Whether their cycles are counted."""
    return isinstance(get_target(task.target), Costed | Commanded)
