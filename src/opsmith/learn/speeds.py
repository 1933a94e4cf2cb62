"""Right programs of a run are measured, and what comes of it is stored before anything reads it.

A measurement that is stored is not made again, in this session or a later one: `SpeedKey` says which are the same.
Which programs are worth it is the caller's business. A session that halts leaves the rest to the next one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.errors import VerifierError
from opsmith.learn.events import MeasuringStarted, ProgramMeasured
from opsmith.learn.measurer import Measurer
from opsmith.learn.session import RunSession
from opsmith.measuring.orders import SpeedKey, SpeedOrder, name_measurement
from opsmith.measuring.record import MeasuringGrade
from opsmith.records import Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows


@dataclass(frozen=True)
class RightProgram:
    """A right program, and the sample that holds it; None: it was there before, or is the task's own."""

    task: Task
    source: str
    sample: str | None


async def measure_programs(session: RunSession, programs: Sequence[RightProgram]) -> None:
    """Measure what is not stored yet, in this order; nothing where the session measures nothing.

    Raises StoreError when nothing can be stored any more.
    """
    measurer, grade = session.measurer, session.settings.measuring.measure
    if measurer is None or grade == "none" or not programs:
        return
    if lack := measurer.explain_lack(programs[0].task):
        session.warn_once(lack)
        return
    session.on_event(MeasuringStarted(len(programs), grade))
    measured = read_keys(session.store, session.run)
    for program in programs:
        await session.running.wait()
        if session.halt:
            return
        order = SpeedOrder(program.task, program.source, MeasuringGrade(grade), frozenset(measured))
        try:
            measured |= await _fill_order(session, measurer, order, program.sample)
        except VerifierError as error:
            session.warn_once(f"task {program.task.id}: its program was not measured: {error}")


def read_keys(store: Store, run: str, only_timed: bool = False) -> set[SpeedKey]:
    """What of a run is measured; `only_timed`: less what could not be."""
    speeds = [speed for speed in store.read_speeds(run) if speed.report.measurement.time is not None or not only_timed]
    return {name_measurement(speed.task, speed.report.measurement) for speed in speeds}


async def _fill_order(session: RunSession, measurer: Measurer, order: SpeedOrder, sample: str | None) -> set[SpeedKey]:
    """The keys of what was measured and stored; a session that halts keeps what it has."""
    keys, start = set(), time.monotonic()
    async for report in measurer.measure(order):
        speed = StoredSpeed(order.task.id, sample, report, time.monotonic() - start)
        session.store.put(speed_rows(session.run, speed)).result()
        session.on_event(ProgramMeasured(speed))
        keys.add(name_measurement(order.task.id, report.measurement))
        if session.halt:
            break
        start = time.monotonic()
    return keys
