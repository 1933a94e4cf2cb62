"""`opsmith devices`: where artefacts would run and be timed."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson

DEVICE = "cpu"
_LEASE_S = 60.0  # that we wait for one


def add_to(app: CommandApp) -> None:
    app.add("devices", show_devices)


def show_devices(
    as_json: AsJson = False,
    is_measuring: Annotated[
        bool,
        typer.Option(
            "--measure", help="Measure the peaks of one thread first: a few seconds, best on a quiet machine."
        ),
    ] = False,
) -> None:
    """Describe this machine; measure what it can do at most.

    The processor, its caches and compiler, who has reserved it for timing, and the most that one thread can do, where
    that was measured: it is kept in the user's cache folder. Then GPUs and emulators: what programs are judged and
    timed on, by which driver, and what is missing for the others. Each is asked in a process of its own.
    """
    from opsmith.devices.describe import describe_device, describe_limits
    from opsmith.devices.lease import find_holder, lease_device
    from opsmith.devices.measure_peaks import measure_peaks
    from opsmith.devices.peaks import load_peaks, save_peaks
    from opsmith.devices.probing import probe_devices
    from opsmith.records import to_json
    from opsmith.report.machines import tabulate_device, tabulate_probed
    from opsmith.report.tables import open_console

    device = describe_device()
    if is_measuring:
        with lease_device(DEVICE, "opsmith devices --measure", _LEASE_S):
            save_peaks(measure_peaks(device))
    peaks, holder = load_peaks(device.digest), find_holder(DEVICE)
    probed, limits = probe_devices(), describe_limits()
    if as_json:
        row = {"device": DEVICE, "digest": device.digest, **to_json(device)}
        row |= {"peaks": to_json(peaks), "holder": to_json(holder), "limits_in_total": limits}
        print(json.dumps([row, *map(to_json, probed)], indent=1))
    else:
        open_console().print(*tabulate_device(DEVICE, device, peaks, holder, limits), tabulate_probed(probed))
