"""Requests for measurements of programs in C."""

from __future__ import annotations

from collections.abc import Sequence

from languages.c.fixture_programs import load_c_task
from opsmith.devices.describe import describe_device
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets
from opsmith.measuring.record import PLAIN, MeasuringGrade

COPIED = "copied"  # a program that is the task's own but for a line that does nothing


def make_request(
    name: str, shapes: Sequence[str], source: str = COPIED, grade: MeasuringGrade = MeasuringGrade.SCREEN
) -> SpeedRequest:
    """Of a program for a task of the suite kernels beside the task's own."""
    task = load_c_task(f"kernels/{name}", False)
    assert task.impl is not None
    copy = f"{task.impl}\nstatic inline int return_same(int n) {{ return n; }}\n"
    program = TimedProgram(copy if source == COPIED else source, "program")
    sets = choose_timed_sets(task, shapes)
    return SpeedRequest(task, program, TimedProgram(task.impl, PLAIN), sets, grade, describe_device(), None)
