"""Baselines: measurements in a file, and what became slower since, for those who watch a library's speed.

A program is compared with whatever was measured of the same problem at the same sizes, on an equal device, by the same
protocol and grade; a simulated machine stays the same one when its tools change, which `flags` tell. Where both have a
ratio to one partner, the ratios are compared: the partner was measured beside each, so that what changed of the machine
falls out. Otherwise times are, which hold only on a machine in equal state; so are counted costs, of which a change of
the simulator falls on both sides.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.intervals import Interval, chain_ratios
from opsmith.measuring.record import RecordError, SpeedMeasurement, read_measurement, write_measurement
from opsmith.outside import read_text

VERSION = 1  # of the file
_SIMULATED = re.compile(r"(emulated:.+)-[0-9a-f]{8}$")  # a language of commands, without the digest of its file


@dataclass(frozen=True)
class SpeedChange:
    """A measurement beside the one before it."""

    now: SpeedMeasurement
    before: SpeedMeasurement | None  # None: the baseline has none that it can be compared with
    ratio: Interval | None  # speed now by speed before: below 1 it is slower; None: it cannot be said
    compared: str = ""  # "time", or the partner whose ratios were compared
    reason: str = ""  # why there is no ratio

    @property
    def toolchains(self) -> tuple[str, str] | None:
        """Those of before and of now, where they differ."""
        before = self.before.flags if self.before is not None else self.now.flags
        return (before, self.now.flags) if before != self.now.flags else None

    @property
    def is_regression(self) -> bool:
        """Slower by more than is the machine's noise, and surely so."""
        return self.ratio is not None and self.ratio.high < 1 / LEAST_GAIN


def compare_baseline(now: Iterable[SpeedMeasurement], baseline: Iterable[SpeedMeasurement]) -> list[SpeedChange]:
    """What changed, one for each measurement of now; the last one of the baseline counts where it has several."""
    before = {_name_place(measurement): measurement for measurement in baseline}
    return [_compare_pair(measurement, before.get(_name_place(measurement))) for measurement in now]


def _name_place(measurement: SpeedMeasurement) -> tuple[object, ...]:
    """What must be equal of two measurements: all but the program, its build and the figures."""
    sizes = tuple(sorted(measurement.sizes.items()))
    device = _SIMULATED.sub(r"\1", measurement.device)
    protocol = (device, measurement.protocol, measurement.grade, measurement.objective)
    return (measurement.problem, sizes, *protocol)


def _compare_pair(now: SpeedMeasurement, before: SpeedMeasurement | None) -> SpeedChange:
    if before is None:
        return SpeedChange(now, None, None, reason="the baseline has nothing at these sizes on such a device")
    for name, measurement in (("now", now), ("before", before)):
        if measurement.time is None:
            return SpeedChange(now, before, None, reason=f"{name}: {measurement.reason}")
    assert now.time is not None
    assert before.time is not None
    partners = [
        each.ratio.partner for each in (now, before) if each.ratio is not None and not each.objective.is_counted
    ]
    if now.ratio is not None and before.ratio is not None and len(partners) == 2 and partners[0] == partners[1]:
        ratio = chain_ratios(now.ratio.precise, before.ratio.precise.invert())
        return SpeedChange(now, before, ratio, now.ratio.partner)
    return SpeedChange(now, before, chain_ratios(before.time, now.time.invert()), now.objective.name)


def write_baseline(path: Path, measurements: Sequence[SpeedMeasurement]) -> None:
    """Write the file, whole or not at all. Raises OSError."""
    data = {"version": VERSION, "measurements": [write_measurement(measurement) for measurement in measurements]}
    draft = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        draft.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_baseline(path: Path) -> list[SpeedMeasurement]:
    """The measurements of a file. Raises RecordError, or TaskError where it cannot be read as text."""
    text = read_text(path)
    try:
        data = json.loads(text)
        version, rows = data["version"], list(data["measurements"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(f"{path}: no baseline: {error!r}; try: write it anew") from None
    if version != VERSION:
        raise RecordError(f"{path}: given version {version!r}; expected {VERSION}; try: write it anew")
    return [read_measurement(row) for row in rows]
