"""Tables of measurements: how fast programs are, beside whom, and what became slower since a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console

from opsmith.measuring.baseline import SpeedChange
from opsmith.measuring.record import SpeedReport
from opsmith.report.record import RATIO, SHARE, TEXT, DataTable, Said
from opsmith.report.speed_rows import SpeedRow, explain_missing, list_reasons, summarise_speeds, word_speed
from opsmith.report.tables import NOTHING
from opsmith.store.measurements import StoredSpeed

_UNITS = {"time": "ns", "GB/s": "GB/s", "GFLOP/s": "GFLOP/s", "of the limit": SHARE, "ratio": RATIO}


def tabulate_speeds(rows: Iterable[SpeedRow], is_of_run: bool = False, is_of_task: bool = False) -> DataTable:
    """A row for each shape set of one program; `is_of_run`: of each task's program, `is_of_task`: of each sample's."""
    columns = {"sample" if is_of_task else "task": TEXT} if is_of_run else {}
    columns |= {"shape set": TEXT, **_UNITS, "claim": TEXT, "grade": TEXT}
    cells = [
        [
            *([row.sample[:12] if row.sample else NOTHING] if is_of_task else []),
            *([Said(row.task, link=("task", row.task))] if is_of_run and not is_of_task else []),
            Said(row.shape_set, note=row.sizes) if is_of_run else f"{row.shape_set} ({row.sizes})",
            *row.figures,
            row.claim,
            row.grade,
        ]
        for row in rows
    ]
    return DataTable("speed" if is_of_run else "", columns, cells, ("grade", *list(_UNITS)[3:0:-1]))


def print_speeds(console: Console, speeds: Sequence[StoredSpeed], is_of_task: bool = False) -> None:
    """What `opsmith show` says of measurements; nothing where there are none. `is_of_task`: of several samples."""
    if speeds:
        rows = list(map(word_speed, speeds))
        console.print(tabulate_speeds(rows, is_of_run=True, is_of_task=is_of_task))
        console.print(*list_reasons(rows), f"speed   {summarise_speeds(speeds)}", sep="\n")


def list_notes(reports: Iterable[SpeedReport]) -> list[str]:
    """Why figures are missing, each reason once."""
    return [reason for reason in dict.fromkeys(map(explain_missing, reports)) if reason]


def tabulate_changes(changes: Iterable[SpeedChange]) -> DataTable:
    """A row for each measurement beside that of the baseline."""
    rows = [
        (
            change.now.shape_set,
            Said(NOTHING if change.ratio is None else str(change.ratio), change.ratio),
            change.compared or NOTHING,
            "slower" if change.is_regression else change.reason or "no regression",
        )
        for change in changes
    ]
    columns = dict.fromkeys(("shape set", "speed now by speed before", "by", "said"), TEXT)
    return DataTable("against the baseline", columns, rows)
