"""Orders filled on this machine, whatever the target can say: times beside the task's own program, or costs.

Programs that the stand-alone runner alone can time are timed by it, on this machine's own device.

What goes wrong on our side is a reason in a report, so that nobody who orders has to stop for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from opsmith.devices.describe import describe_device
from opsmith.devices.lease import lease_device
from opsmith.devices.peaks import load_peaks
from opsmith.errors import OpsmithError
from opsmith.judging.pool import Pool
from opsmith.measuring.costs import BASE, CostRequest, count_at_sizes, measure_costs
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import (
    SpeedRequest,
    TimedProgram,
    choose_timed_sets,
    measure_program,
    withhold_figures,
)
from opsmith.measuring.objectives import (
    choose_device_kind,
    is_carried_only,
    list_figures,
    list_objectives,
    require_figures,
)
from opsmith.measuring.orders import SpeedOrder, name_measurement
from opsmith.measuring.record import SpeedReport
from opsmith.records import TIME, Objective
from opsmith.remote.here import measure_here
from opsmith.remote.merging import RemoteResults, merge_results, read_results
from opsmith.remote.packing import pack_requests


def fill_order(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    """What was not measured yet, one report for each shape set. Nothing for a target that can say neither."""
    if is_carried_only(order.task):
        yield from _run_carried(order, pool, room)
        return
    figures = require_figures(order.task, order.figures) if order.figures else list_figures(order.task)[:1]
    if TIME.name in figures:
        yield from _time_program(order, pool, room)
    counted = [offer for offer in list_objectives(order.task) if offer.name in figures and offer.is_counted]
    if counted:
        yield from _count_program(order, pool, room, counted)


def _run_carried(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    """One report for each shape set, less what was measured. Raises RemoteError, BusyError."""
    pack = pack_requests(room, pool.verify, [make_request(order)])
    received, results = None, RemoteResults({}, {}, Path())
    if pack.sets:
        with lease_device(f"{choose_device_kind(order.task)}:0", f"measure {order.task.id}", room.lease_seconds):
            received = measure_here(pack, lambda _: None)
        results = read_results(received.write_all(), pack)
    for _, report in merge_results(room, pack, results):
        if name_measurement(order.task.id, report.measurement) not in order.measured:
            yield report
    if received is not None:
        received.remove()


def _count_program(
    order: SpeedOrder, pool: Pool, room: TimingRoom, objectives: Sequence[Objective]
) -> Iterator[SpeedReport]:
    sets = order.shape_sets or (BASE,)
    request = CostRequest(order.task, order.source, order.find_partner(), order.grade, tuple(objectives), sets)
    for name in sets:
        here = replace(request, shape_sets=(name,))
        unmeasured = [
            planned.objective
            for planned in here.plan_measurements()
            if name_measurement(order.task.id, planned) not in order.measured
        ]
        if unmeasured:
            here = replace(here, objectives=tuple(unmeasured))
            yield from measure_costs(pool.verify, pool.cost, here, partial(count_at_sizes, room))


def _time_program(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    request = make_request(order)
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


def make_request(order: SpeedOrder) -> SpeedRequest:
    """What is measured for an order, on this machine's processor."""
    device, partner = describe_device(), order.find_partner()
    return SpeedRequest(
        order.task,
        TimedProgram(order.source, "program"),
        None if partner is None else TimedProgram(partner[1], partner[0]),
        choose_timed_sets(order.task, order.shape_sets),
        order.grade,
        device,
        load_peaks(device.digest),
        secrets.randbits(48),
    )
