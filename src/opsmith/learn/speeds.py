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
from opsmith.learn.session import RunSession
from opsmith.measuring.orders import Measurer, SpeedKey, SpeedOrder, name_measurement
from opsmith.measuring.record import MeasuringGrade
from opsmith.records import Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows


@dataclass(frozen=True)
class RightProgram:
    """A candidate that was judged right, the sample that holds it, and what of it is asked for: see `SpeedOrder`."""

    task: Task
    source: str
    sample: str
    grade: MeasuringGrade = MeasuringGrade.FULL
    partner: str | None = None
    shape_sets: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    def make_order(self, measured: frozenset[SpeedKey]) -> SpeedOrder:
        """Less what is `measured`."""
        return SpeedOrder(self.task, self.source, self.grade, measured, self.partner, self.shape_sets, self.figures)


async def measure_programs(session: RunSession, programs: Sequence[RightProgram]) -> None:
    """Measure what is not stored yet, in this order; nothing where the session has no measurer.

    The session halts when its time for measuring is over. Raises StoreError when nothing can be stored any more.
    """
    measurer = session.measurer
    if measurer is None or not programs:
        return
    if lack := measurer.explain_lack(programs[0].task):
        session.warn_once(lack)
        return
    session.on_event(MeasuringStarted(len(programs), programs[0].grade))
    measured, cap = read_keys(session.store, session.run), session.settings.measuring.max_measured
    spent = sum(speed.seconds or 0.0 for speed in session.store.read_speeds(session.run))
    for program in programs:
        await session.running.wait()
        session.halt = session.halt or ("max measured" if cap is not None and spent >= cap else "")
        if session.halt:
            return
        start = time.monotonic()
        try:
            measured |= await _fill_order(session, measurer, program.make_order(frozenset(measured)), program.sample)
        except VerifierError as error:
            session.warn_once(f"task {program.task.id}: its program was not measured: {error}")
        spent += time.monotonic() - start


def read_keys(store: Store, run: str, only_timed: bool = False) -> set[SpeedKey]:
    """What of a run is measured; `only_timed`: less what could not be."""
    speeds = [speed for speed in store.read_speeds(run) if speed.report.measurement.time is not None or not only_timed]
    return {name_measurement(speed.task, speed.report.measurement) for speed in speeds}


async def _fill_order(session: RunSession, measurer: Measurer, order: SpeedOrder, sample: str) -> set[SpeedKey]:
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
