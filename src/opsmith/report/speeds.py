"""Tables of measurements: how fast programs are, beside whom, and what became slower since a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from opsmith.measuring.baseline import SpeedChange
from opsmith.measuring.record import SpeedReport
from opsmith.report.speed_rows import (
    NOTHING,
    SpeedRow,
    explain_missing,
    list_reasons,
    summarise_speeds,
    word_report,
    word_speed,
)
from opsmith.report.tables import make_table
from opsmith.store.measurements import StoredSpeed

_FIGURES = ("time", "GB/s", "GFLOP/s", "of the limit")


def tabulate_speeds(reports: Sequence[SpeedReport]) -> Table:
    """A row for each shape set of one program."""
    grid = make_table("shape set", *_FIGURES, "ratio", "claim", right=_FIGURES, least=_FIGURES[:0:-1])
    for row in map(word_report, reports):
        grid.add_row(f"{row.shape_set} ({row.sizes})", *_write_figures(row))
    return grid


def tabulate_run_speeds(rows: Iterable[SpeedRow]) -> Table:
    """A row for each task and shape set of a run."""
    grid = make_table(
        "task",
        "shape set",
        *_FIGURES,
        "ratio",
        "claim",
        "grade",
        right=_FIGURES,
        title="speed",
        least=("grade", *_FIGURES[:0:-1]),
    )
    for row in rows:
        grid.add_row(row.task, row.shape_set, *_write_figures(row), row.grade)
    return grid


def print_speeds(console: Console, speeds: Sequence[StoredSpeed]) -> None:
    """What `opsmith show` says of measurements; nothing where there are none."""
    if speeds:
        rows = list(map(word_speed, speeds))
        console.print(tabulate_run_speeds(rows))
        console.print(*list_reasons(rows), f"speed   {summarise_speeds(speeds)}", sep="\n")


def list_notes(reports: Iterable[SpeedReport]) -> list[str]:
    """Why figures are missing, each reason once."""
    return [reason for reason in dict.fromkeys(map(explain_missing, reports)) if reason]


def _write_figures(row: SpeedRow) -> tuple[str, ...]:
    return row.time, row.gbytes, row.gflops, row.share, row.ratio, row.claim


def tabulate_changes(changes: Iterable[SpeedChange]) -> Table:
    """A row for each measurement beside that of the baseline."""
    grid = make_table("shape set", "speed now by speed before", "by", "said", title="against the baseline")
    for change in changes:
        words = "slower" if change.is_regression else change.reason or "no regression"
        ratio = NOTHING if change.ratio is None else str(change.ratio)
        grid.add_row(change.now.shape_set, ratio, change.compared or NOTHING, words)
    return grid
