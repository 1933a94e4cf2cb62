"""`opsmith measure`: how fast a right program is, beside another one."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.options import (
    AsJson,
    TargetName,
    TargetOptions,
    TrustTasks,
    make_pool,
    read_target_options,
)
from opsmith.cli.progress import show_progress
from opsmith.cli.text import read_text
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.measuring.baseline import SpeedChange
    from opsmith.measuring.measure import SpeedRequest, TimedProgram
    from opsmith.measuring.record import SpeedReport
    from opsmith.records import Task


def add_to(app: typer.Typer) -> None:
    app.command(name="measure")(measure_speed)


def measure_speed(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    task: Annotated[str, typer.Argument(metavar="TASK", help="An id or a file.")],
    impl: Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program; default: the task's own.")] = None,
    against: Annotated[
        str | None, typer.Option(metavar="plain|FILE", help="The partner; default: plain, the task's own program.")
    ] = None,
    shapes: Annotated[
        str, typer.Option(metavar="NAME,...", help="Shape sets; default: those of `bench` in the task's file.")
    ] = "",
    is_full: Annotated[
        bool, typer.Option("--full/--screen", help="Several processes and two clocks, or a quick look.")
    ] = True,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Written if it is not there, else compared with.")
    ] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time a right program beside a partner.

    The program is judged first, and outputs of timed calls are compared. Best on a quiet machine. Exit code 0: all was
    measured; 1: a figure is missing, or something became slower than the baseline by more than the noise.
    """
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.measure import measure_program
    from opsmith.suites import load_tasks

    (chosen, *surplus) = load_tasks((task,), target, read_target_options(option))
    if surplus:
        raise UsageError(f"measure: {task} names {len(surplus) + 1} tasks; expected one")
    request = _make_request(chosen, impl, against, shapes, is_full)
    reports = []
    with (
        show_progress("it is measured") as tell,
        make_pool(1, trust_tasks, None, None) as pool,
        TimingRoom() as room,
    ):
        for report in measure_program(room, pool.verify, request):
            tell(f"{chosen.id}: measured at {report.measurement.shape_set}")
            reports.append(report)
    changes = _compare_with(baseline, reports)
    _print_reports(request, reports, changes, as_json)
    is_missing = any(report.measurement.reason for report in reports)
    raise typer.Exit(int(is_missing or any(change.is_regression for change in changes)))


def _make_request(task: Task, impl: Path | None, against: str | None, shapes: str, is_full: bool) -> SpeedRequest:
    from opsmith.devices.describe import describe_device
    from opsmith.devices.peaks import load_peaks
    from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets
    from opsmith.measuring.record import MeasuringGrade

    shape_sets = choose_timed_sets(task, [name for name in shapes.split(",") if name])
    source = read_text(impl) if impl else task.impl
    if source is None:
        raise UsageError(f"measure: task {task.id} has no program of its own; try: --impl FILE")
    device = describe_device()
    return SpeedRequest(
        task,
        TimedProgram(source, "program"),
        _choose_partner(task, source, against),
        shape_sets,
        MeasuringGrade.FULL if is_full else MeasuringGrade.SCREEN,
        device,
        load_peaks(device.digest),
        secrets.randbits(48),
    )


def _choose_partner(task: Task, source: str, against: str | None) -> TimedProgram | None:
    """None: the task's own program was asked for, and nobody beside it."""
    from opsmith.measuring.measure import PLAIN, TimedProgram
    from opsmith.records import Candidate

    if against is None and source == task.impl:
        return None
    if against in (None, PLAIN):
        if task.impl is None:
            raise UsageError(f"measure: task {task.id} has no program of its own to compare with; try: --against FILE")
        return TimedProgram(task.impl, PLAIN)
    partner = read_text(Path(against))
    if partner == source:
        raise UsageError(f"measure: --against {against} is the program itself; expected another one")
    return TimedProgram(partner, Candidate(partner).id)


def _compare_with(baseline: Path | None, reports: list[SpeedReport]) -> list[SpeedChange]:
    from opsmith.measuring.baseline import compare_baseline, read_baseline, write_baseline

    measurements = [report.measurement for report in reports]
    if baseline is None:
        return []
    if baseline.exists():
        return compare_baseline(measurements, read_baseline(baseline))
    write_baseline(baseline, measurements)
    return []


def _print_reports(
    request: SpeedRequest, reports: list[SpeedReport], changes: list[SpeedChange], as_json: bool
) -> None:
    from opsmith.report.speeds import list_notes, tabulate_changes, tabulate_speeds
    from opsmith.report.tables import open_console

    if as_json:
        print(json.dumps(_write_json(request, reports, changes), indent=1))
        return
    console = open_console()
    console.print(f"{request.task.id}, {request.grade.value} grade, on {request.device.name}", markup=False)
    console.print(tabulate_speeds(reports), *([tabulate_changes(changes)] if changes else []))
    for line in (*list_notes(reports), *dict.fromkeys(report.measurement.flags for report in reports)):
        console.print(line, markup=False)


def _write_json(request: SpeedRequest, reports: list[SpeedReport], changes: list[SpeedChange]) -> dict[str, Any]:
    from opsmith.measuring.record import write_report
    from opsmith.records import to_json

    return {
        "task": request.task.id,
        "cpu": request.device.name,
        "measurements": [write_report(report) for report in reports],
        "changes": [
            {
                "shape_set": change.now.shape_set,
                "ratio": to_json(change.ratio),
                "compared": change.compared,
                "reason": change.reason,
                "is_regression": change.is_regression,
            }
            for change in changes
        ],
    }
