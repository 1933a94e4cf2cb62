"""Tables of measurements: how fast programs are, beside whom, and what became slower since a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from opsmith.measuring.baseline import SpeedChange
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import SpeedMeasurement, SpeedReport, TimeUnit
from opsmith.report.tables import make_table

NOTHING = "-"
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def tabulate_speeds(reports: Sequence[SpeedReport]) -> Table:
    """A row for each shape set."""
    figures = ("time", "GB/s", "GFLOP/s", "share of the limit")
    grid = make_table("shape set", *figures, "ratio", "claim", right=figures)
    for report in reports:
        measurement, share = report.measurement, report.share
        grid.add_row(
            f"{measurement.shape_set} ({write_sizes(measurement)})",
            write_duration(measurement),
            NOTHING if share is None else write_figure(share.gbytes),
            NOTHING if share is None else write_figure(share.gflops),
            NOTHING if share is None or share.share is None else f"{100 * share.share.value:.0f} %",
            write_ratio(measurement),
            _write_claim(measurement),
        )
    return grid


def list_notes(reports: Iterable[SpeedReport]) -> list[str]:
    """Why figures are missing, each reason once."""
    reasons = [report.measurement.reason for report in reports]
    reasons += [f"share of the limit: {report.share.reason}" for report in reports if report.share is not None]
    return [reason for reason in dict.fromkeys(reasons) if reason and not reason.endswith(": ")]


def tabulate_changes(changes: Iterable[SpeedChange]) -> Table:
    """A row for each measurement beside that of the baseline."""
    grid = make_table("shape set", "speed now by speed before", "by", "said", title="against the baseline")
    for change in changes:
        words = "slower" if change.is_regression else change.reason or "no regression"
        ratio = NOTHING if change.ratio is None else str(change.ratio)
        grid.add_row(change.now.shape_set, ratio, change.compared or NOTHING, words)
    return grid


def write_sizes(measurement: SpeedMeasurement) -> str:
    return ", ".join(f"{name} = {size}" for name, size in measurement.sizes.items())


def write_duration(measurement: SpeedMeasurement) -> str:
    """The time of one call in its unit; cycles are counted, so that they have no interval."""
    if measurement.time is None:
        return NOTHING
    if measurement.unit is TimeUnit.CYCLES:
        return f"{measurement.time.value:.0f} cycles"
    return write_time(measurement.time)


def describe_speed(measurement: SpeedMeasurement) -> str:
    """A line of a log."""
    figures = [write_duration(measurement), write_ratio(measurement)]
    said = ", ".join(figure for figure in figures if figure != NOTHING)
    return "; ".join(words for words in (said, measurement.reason) if words)


def write_time(time: Interval) -> str:
    """
    >>> write_time(Interval(1500.0, 1400.0, 1600.0))
    '1.500 [1.400, 1.600] us'
    """
    scale, unit = next((scale, unit) for scale, unit in _UNITS if time.value >= scale or unit == "ns")
    return f"{time.scale_by(1 / scale)} {unit}"


def write_figure(figure: Interval | None) -> str:
    return NOTHING if figure is None else f"{figure.value:.2f}"


def write_ratio(measurement: SpeedMeasurement) -> str:
    """How many times as fast as its partner."""
    ratio = measurement.ratio
    if ratio is None:
        return NOTHING
    is_counted = measurement.unit is TimeUnit.CYCLES
    figure = f"{ratio.precise.value:.3f}" if is_counted else str(ratio.precise)
    return f"{figure} to {_shorten_name(ratio.partner)}"


def _write_claim(measurement: SpeedMeasurement) -> str:
    if measurement.ratio is None:
        return NOTHING if not measurement.sought_partner else "not said"
    if measurement.unit is TimeUnit.CYCLES:
        return "none: simulated"
    return measurement.ratio.claim.value if measurement.ratio.claim is not None else "none: a screen"


def _shorten_name(name: str) -> str:
    return name[:8]
