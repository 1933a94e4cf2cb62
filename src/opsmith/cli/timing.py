"""`opsmith measure`: how fast a right program is, beside another one."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import (
    AsJson,
    StorePlace,
    TargetName,
    TargetOptions,
    TrustTasks,
    make_pool,
    read_target_options,
)
from opsmith.cli.progress import show_progress
from opsmith.cli.text import read_text
from opsmith.cli.timing_elsewhere import (
    MeasuringPlace,
    MergedResults,
    OnPlace,
    PackFolder,
    measure_elsewhere,
)
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.measuring.baseline import SpeedChange
    from opsmith.measuring.measure import SpeedRequest, TimedProgram
    from opsmith.measuring.record import SpeedReport
    from opsmith.records import Task


ShapeSets = Annotated[
    str, typer.Option(metavar="NAME,...", help="Shape sets; default: those of `bench` in the task's file.")
]
Partner = Annotated[
    str | None,
    typer.Option(
        metavar="plain|eager|compile|FILE",
        help="The partner: the task's own program (the default), torch, torch.compile, or another program.",
    ),
]


def add_to(app: CommandApp) -> None:
    app.add("measure", measure_speed)


def measure_speed(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    name: Annotated[str, typer.Argument(metavar="TASK|RUN", help="A task's id or file, or a run.")],
    impl: Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program; default: the task's own.")] = None,
    against: Partner = None,
    shapes: ShapeSets = "",
    is_full: Annotated[
        bool, typer.Option("--full/--screen", help="Several processes and two clocks, or a quick look.")
    ] = True,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Figures, written if it is not there, else compared with.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.svg|png|pdf", help="Draw the times over the shape sets.")
    ] = None,
    on: OnPlace = None,
    pack: PackFolder = None,
    merge: MergedResults = None,
    is_again: Annotated[bool, typer.Option("--again", help="Of a run: measure what is stored already, too.")] = False,
    *,
    place: StorePlace,
    target: TargetName = None,
    option: TargetOptions = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time a right program, or what a run solved, beside another one.

    The program is judged first, and outputs of timed calls are compared. Best on a quiet machine. Torch is timed beside
    the task's own program, in a process without the program, and the ratios are multiplied. Figures of a run's programs
    are stored there. Where a simulator or a cost model runs programs, their cycles are counted. Exit code 0: all was
    measured; 1: a figure is missing, or something became slower than the baseline by more than the noise.
    """
    from opsmith.cli.timing_runs import choose_run, measure_run

    measuring_place = MeasuringPlace(on, pack, merge)
    if (run := choose_run(name, place)) is not None:
        of_tasks = {"impl": impl, "against": against, "shapes": shapes, "baseline": baseline, "figure": figure}
        _refuse_options(run, of_tasks | {"target": target, "option": option})
        raise typer.Exit(measure_run(run, place, is_full, is_again, trust_tasks, as_json, measuring_place))
    from opsmith.measuring.objectives import is_carried_only, is_timed, list_figures
    from opsmith.suites import load_tasks

    _refuse_figure(figure)
    (chosen, *surplus) = load_tasks((name,), target, read_target_options(option))
    if measuring_place.is_elsewhere or is_carried_only(chosen):
        tasks = (chosen, *surplus)
        requests = [_make_request(task, impl, against, shapes, is_full) for task in tasks]
        raise typer.Exit(_time_elsewhere(measuring_place, requests, against, (baseline, figure), trust_tasks, as_json))
    if surplus:
        raise UsageError(f"measure: {name} names {len(surplus) + 1} tasks; expected one")
    if list_figures(chosen) and not is_timed(chosen):
        heading, counted = _count_cycles(chosen, impl, against, shapes, is_full, trust_tasks)
        _draw_figure(figure, heading, counted)
        raise typer.Exit(_say_reports(heading, counted, baseline, as_json))
    request = _make_request(chosen, impl, against, shapes, is_full)
    reports = _time_program(request, against, trust_tasks)
    heading = _Heading(chosen.id, request.grade.value, request.device.name)
    _draw_figure(figure, heading, reports)
    raise typer.Exit(_say_reports(heading, reports, baseline, as_json))


@dataclass(frozen=True)
class _Heading:
    """What stands above the figures."""

    task: str
    grade: str
    machine: str | None  # the processor, or what is simulated


def _time_program(request: SpeedRequest, against: str | None, trust_tasks: bool) -> list[SpeedReport]:
    from opsmith.measuring.chaining import chain_to_torch
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.measure import measure_program
    from opsmith.measuring.torch_partners import PARTNERS

    reports = []
    with (
        show_progress("it is measured") as tell,
        make_pool(1, trust_tasks) as pool,
        TimingRoom() as room,
    ):
        for report in measure_program(room, pool.verify, request):
            tell(f"{request.task.id}: measured at {report.measurement.shape_set}")
            reports.append(report)
        if against in PARTNERS:
            tell(f"{request.task.id}: torch is timed")
            reports = chain_to_torch(request, reports, against)
    return reports


def _time_elsewhere(
    place: MeasuringPlace,
    requests: list[SpeedRequest],
    against: str | None,
    files: tuple[Path | None, Path | None],
    trust_tasks: bool,
    as_json: bool,
) -> int:
    """The exit code. One task is said as one that is measured here, several in turn."""
    from opsmith.measuring.torch_partners import PARTNERS

    if against in PARTNERS:
        raise UsageError(f"--against {against}: torch is timed on this machine only; expected plain or a FILE")
    if len(requests) > 1 and any(files):
        raise UsageError("--baseline and --figure: given several tasks; expected one")
    rows = measure_elsewhere(place, requests, trust_tasks)
    if rows is None:
        return 0
    code, (baseline, figure) = 0, files
    for request, reports in zip(requests, rows, strict=True):
        device = next((report.measurement.device_name for report in reports if report.measurement.device_name), None)
        heading = _Heading(request.task.id, request.grade.value, device or "no device")
        _draw_figure(figure, heading, reports)
        code |= _say_reports(heading, reports, baseline, as_json)
    return code


def _say_reports(heading: _Heading, reports: list[SpeedReport], baseline: Path | None, as_json: bool) -> int:
    """The exit code."""
    changes = _compare_with(baseline, reports)
    _print_reports(heading, reports, changes, as_json)
    is_missing = any(report.measurement.reason for report in reports)
    return int(is_missing or any(change.is_regression for change in changes))


def _refuse_figure(path: Path | None) -> None:
    from opsmith.report.files import PICTURES

    if path is not None and path.suffix.removeprefix(".") not in PICTURES:
        raise UsageError(f"--figure {path}: given {path.suffix or 'no suffix'}; expected a file in .svg, .png or .pdf")


def _draw_figure(path: Path | None, heading: _Heading, reports: list[SpeedReport]) -> None:
    from opsmith.report.curves import draw_speeds
    from opsmith.report.files import write_figure

    figure = draw_speeds(heading.task, reports, heading.machine or "")
    if path is not None and figure is not None:
        write_figure(figure, path)


def _refuse_options(run: str, options: dict[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(
                f"--{name}: given with a run ({run}); expected it with a task: a run's programs are stored"
            )


def _make_request(task: Task, impl: Path | None, against: str | None, shapes: str, is_full: bool) -> SpeedRequest:
    from opsmith.devices.describe import describe_device
    from opsmith.devices.peaks import load_peaks
    from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets
    from opsmith.measuring.record import MeasuringGrade

    shape_sets = choose_timed_sets(task, [name for name in shapes.split(",") if name])
    source, device = _read_source(task, impl), describe_device()
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


def _read_source(task: Task, impl: Path | None) -> str:
    source = read_text(impl) if impl else task.impl
    if source is None:
        raise UsageError(f"measure: task {task.id} has no program of its own; try: --impl FILE")
    return source


def _count_cycles(
    task: Task, impl: Path | None, against: str | None, shapes: str, is_full: bool, trust_tasks: bool
) -> tuple[_Heading, list[SpeedReport]]:
    """The cycles of a program that is simulated: at the task's own sizes, and where commands run it at its bench's."""
    from opsmith.measuring.costs import CostRequest, choose_counted_sets, count_at_sizes, measure_costs
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.measuring.torch_partners import PARTNERS

    shape_sets = choose_counted_sets(task, [name for name in shapes.split(",") if name])
    if against in PARTNERS:
        raise UsageError(
            f"--against {against}: programs of target {task.target} are simulated; expected plain or a FILE"
        )
    source = _read_source(task, impl)
    partner = _choose_partner(task, source, against)
    named = None if partner is None else (partner.name, partner.source)
    grade = MeasuringGrade.FULL if is_full else MeasuringGrade.SCREEN
    request = CostRequest(task, source, named, grade, shape_sets=shape_sets)
    with make_pool(1, trust_tasks) as pool, TimingRoom() as room:
        reports = list(measure_costs(pool.verify, pool.cost, request, partial(count_at_sizes, room)))
    return _Heading(task.id, request.grade.value, reports[0].measurement.device), reports


def _choose_partner(task: Task, source: str, against: str | None) -> TimedProgram | None:
    """None: the task's own program was asked for, and nobody beside it; torch is compared with the task's own."""
    from opsmith.measuring.measure import TimedProgram
    from opsmith.measuring.record import PLAIN
    from opsmith.measuring.torch_partners import PARTNERS
    from opsmith.records import Candidate

    if (against is None and source == task.impl) or (against in PARTNERS and task.impl in (None, source)):
        return None
    if against in (None, PLAIN, *PARTNERS):
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


def _print_reports(heading: _Heading, reports: list[SpeedReport], changes: list[SpeedChange], as_json: bool) -> None:
    from opsmith.report.speeds import list_notes, tabulate_changes, tabulate_speeds, word_report
    from opsmith.report.tables import open_console

    if as_json:
        print(json.dumps(_write_json(heading, reports, changes), indent=1))
        return
    console = open_console()
    console.print(f"{heading.task}, {heading.grade} grade, on {heading.machine}", markup=False)
    tables = [tabulate_speeds(map(word_report, reports))] if any(report.measurement.time for report in reports) else []
    console.print(*tables, *([tabulate_changes(changes)] if changes else []))
    for line in (*list_notes(reports), *filter(None, dict.fromkeys(report.measurement.flags for report in reports))):
        console.print(line, markup=False)


def _write_json(heading: _Heading, reports: list[SpeedReport], changes: list[SpeedChange]) -> dict[str, Any]:
    from opsmith.measuring.record import write_report
    from opsmith.records import to_json

    return {
        "task": heading.task,
        "cpu": heading.machine,
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
