"""Orders for programs that only the runner times, filled on this machine's own device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opsmith.devices.lease import lease_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.orders import SpeedOrder, name_measurement
from opsmith.measuring.record import SpeedReport
from opsmith.measuring.service import make_request
from opsmith.remote.here import measure_here
from opsmith.remote.merging import RemoteResults, merge_results, read_results
from opsmith.remote.packing import pack_requests


def fill_carried(order: SpeedOrder, pool: Pool, room: TimingRoom) -> Iterator[SpeedReport]:
    """One report for each shape set, less what was measured. Raises RemoteError, BusyError."""
    pack = pack_requests(room, pool.verify, [make_request(order)])
    received, results = None, RemoteResults({}, {}, Path())
    if pack.sets:
        with lease_device(f"{order.task.target}:0", f"measure {order.task.id}", room.lease_seconds):
            received = measure_here(pack, lambda _: None)
        results = read_results(received.write_all(), pack)
    for _, report in merge_results(room, pack, results):
        if name_measurement(order.task.id, report.measurement) not in order.measured:
            yield report
    if received is not None:
        received.remove()
