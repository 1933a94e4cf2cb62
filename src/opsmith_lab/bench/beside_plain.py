"""A program beside its problem's plain one: what every table of speeds measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opsmith.devices.describe import Device, describe_device
from opsmith.devices.peaks import load_peaks
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, Verify, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedReport
from opsmith.records import Task


@dataclass
class PlainTimer:
    """Where programs are measured, and by whom they are judged before."""

    room: TimingRoom
    verify: Verify
    device: Device = field(default_factory=describe_device, kw_only=True)

    def time_program(
        self, task: Task, source: str | None, shape_sets: Mapping[str, Mapping[str, int]], grade: MeasuringGrade
    ) -> Iterator[SpeedReport]:
        """By shape set; nothing where there is no program but the plain one."""
        if source is None or task.impl is None or source == task.impl:
            return
        sides = TimedProgram(source, "program"), TimedProgram(task.impl, PLAIN)
        request = SpeedRequest(task, *sides, shape_sets, grade, self.device, load_peaks(self.device.digest))
        yield from measure_program(self.room, self.verify, request)


def describe_failure(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
