"""`opsmith bench schedules`: searches without a language model side by side, size by size."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson, StorePlace, make_pool
from opsmith.cli.progress import show_progress
from opsmith_lab.cli.printing import print_figures


def bench_schedules(
    kernels: Annotated[list[str] | None, typer.Argument(metavar="KERNEL", help="Default: all three.")] = None,
    searches: Annotated[
        list[str] | None, typer.Option("--search", metavar="MODEL", help="May be given several times; default: all.")
    ] = None,
    sizes: Annotated[int, typer.Option(min=1, max=10, metavar="N", help="Of each kernel.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, metavar="N")] = 3,
    attempts: Annotated[int, typer.Option(min=1, metavar="N", help="In a round.")] = 4,
    seed: Annotated[int, typer.Option(metavar="S")] = 0,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Tune three kernels at ten sizes by searches, side by side.

    The tuner writes C; metaschedule and templates write TVM. Each has as many builds. What was tuned at one size is
    measured at all others, by a screen, beside the plain program of its language and torch. The same command goes on
    where it was stopped: what was tuned and measured lies in schedules/ of the folder.
    """
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.records import to_json
    from opsmith.report.speeds import write_interval
    from opsmith_lab.bench.kernel_speeds import SpeedTable
    from opsmith_lab.bench.schedule_sizes import SEARCHES, SIZES, ScheduleTable
    from opsmith_lab.bench.tables import tabulate_cells

    folder = Path(place.out) / "schedules"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        place.make() as store,
        show_progress("searches side by side") as tell,
        make_pool(1, False) as pool,
        TimingRoom() as room,
    ):
        speeds = SpeedTable(room, pool.verify, grade=MeasuringGrade.SCREEN, lines=folder / "speeds.jsonl")
        table = ScheduleTable(store, speeds, folder, rounds, attempts, seed)
        rows = list(table.list_rows(searches or list(SEARCHES), kernels or list(SIZES), sizes, tell))
    cells = [
        [
            row.tuned.kernel,
            row.tuned.search,
            row.tuned.tuned_at,
            row.speed.shape_set.removeprefix("at_"),
            write_interval(row.speed.program_ratio),
            write_interval(row.over_eager),
            f"{row.tuned.seconds:.0f}",
            "; ".join(row.speed.reasons) or ("" if row.tuned.source else "nothing is faster than plain"),
        ]
        for row in rows
    ]
    names = ("kernel", "search", "tuned at", "measured at", "to plain", "to eager", "seconds", "missing")
    (folder / "rows.json").write_text(json.dumps(to_json(rows), indent=1) + "\n", "utf-8")
    print_figures(as_json, to_json(rows), tabulate_cells(names, (*names[:4], "missing"), cells))
