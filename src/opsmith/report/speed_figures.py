"""The picture of a program's speed over sizes: beside its partner, and below what the device allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import CYCLES, TIME
from opsmith.report.curves import Figure
from opsmith.report.figures import interval_chart, place_interval

PROGRAM, LIMIT = "program", "limit of the device"
_UNITS = {TIME: ("µs", 1e-3), CYCLES: ("cycles", 1.0)}  # of what is a speed


def draw_speeds(task: str, reports: Sequence[SpeedReport], machine: str = "") -> Figure | None:
    """One program's times by shape set, small ones first; None: no time is known. `machine`: for its title."""
    timed = [
        report for report in reports if report.measurement.time is not None and report.measurement.objective in _UNITS
    ]
    if not timed:
        return None
    unit, factor = _UNITS[timed[0].measurement.objective]
    rows = [row for report in sorted(timed, key=_read_time) for row in _list_points(report, factor)]
    screened = any(report.measurement.grade is MeasuringGrade.SCREEN for report in timed)
    caption = f"Time of one call of {task} by shape set, in {unit}, with 95 % intervals; the scale is logarithmic."
    caption += " A partner's time is the program's times their ratio." if any(map(_has_ratio, timed)) else ""
    caption += " Screened: not for publication." if screened else ""
    spec = interval_chart(
        rows,
        title=f"Speed of {task}" + (f", {machine}" if machine else ""),
        x_title="shape set",
        y_title=f"{unit} of one call",
    )
    return Figure("speed", f"Speed of {task}", caption, spec)


def _list_points(report: SpeedReport, factor: float) -> Iterator[dict[str, Any]]:
    measurement, share = report.measurement, report.share
    assert measurement.time is not None
    yield _make_point(measurement.shape_set, PROGRAM, measurement.time, factor)
    if measurement.ratio is not None:
        partner = measurement.ratio.precise.scale_by(measurement.time.value)
        yield _make_point(measurement.shape_set, measurement.ratio.partner[:8], partner, factor)
    if share is not None and share.share is not None:
        least = measurement.time.value * min(1.0, share.share.value)
        yield _make_point(measurement.shape_set, LIMIT, Interval(least, least, least), factor)


def _make_point(shape_set: str, series: str, time: Interval, factor: float) -> dict[str, Any]:
    return {"x": shape_set, "series": series, **place_interval(time.scale_by(factor))}


def _read_time(report: SpeedReport) -> float:
    return report.measurement.time.value if report.measurement.time is not None else 0.0


def _has_ratio(report: SpeedReport) -> bool:
    return report.measurement.ratio is not None
