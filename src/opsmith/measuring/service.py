"""Orders filled on this machine, whatever the target can say: times beside the task's own program, or cycles.

What goes wrong on our side is a reason in a report, so that nobody who orders has to stop for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace

from opsmith.devices.describe import describe_device
from opsmith.devices.peaks import load_peaks
from opsmith.errors import OpsmithError
from opsmith.judging.pool import Pool
from opsmith.measuring.cycles import CycleRequest, measure_cycles
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import (
    PLAIN,
    SpeedRequest,
    TimedProgram,
    choose_timed_sets,
    measure_program,
    withhold_figures,
)
from opsmith.measuring.orders import SpeedOrder, is_counted, is_timed, name_measurement
from opsmith.measuring.record import SpeedReport


def fill_order(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    """What was not measured yet, one report for each shape set. Nothing for a target that can say neither."""
    if is_timed(order.task):
        yield from _time_program(order, pool, room)
    elif is_counted(order.task):
        yield from _count_program(order, pool)


def _count_program(order: SpeedOrder, pool: Pool) -> Iterator[SpeedReport]:
    partner = order.find_partner()
    request = CycleRequest(order.task, order.source, None if partner is None else (PLAIN, partner), order.grade)
    if name_measurement(order.task.id, request.plan_measurement()) not in order.measured:
        yield measure_cycles(pool.verify, pool.cost, request)


def _time_program(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    request = _make_request(order)
    unmeasured = {
        name: sizes
        for name, sizes in request.shape_sets.items()
        if name_measurement(order.task.id, withhold_figures(request, name, "planned")) not in order.measured
    }
    waiting = list(unmeasured)
    try:
        for report in measure_program(room, pool.verify, replace(request, shape_sets=unmeasured)) if waiting else ():
            waiting.remove(report.measurement.shape_set)
            yield report
    except (OpsmithError, OSError) as error:
        for name in waiting:
            yield SpeedReport(withhold_figures(request, name, f"it could not be measured here: {error}"), None)


def _make_request(order: SpeedOrder) -> SpeedRequest:
    device, partner = describe_device(), order.find_partner()
    return SpeedRequest(
        order.task,
        TimedProgram(order.source, "program"),
        None if partner is None else TimedProgram(partner, PLAIN),
        choose_timed_sets(order.task),
        order.grade,
        device,
        load_peaks(device.digest),
        secrets.randbits(48),
    )
