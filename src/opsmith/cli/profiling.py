"""`opsmith profile`: why a right program is as fast as it is."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, Impl, TargetName, TargetOptions, TrustTasks, make_pool, read_target_options
from opsmith.cli.progress import show_progress
from opsmith.cli.text import read_text
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.judging.pool import Pool
    from opsmith.measuring.record import SpeedReport
    from opsmith.profiling.choice import Profilers
    from opsmith.records import ProfileReport, Task


def add_to(app: CommandApp) -> None:
    app.add("profile", profile_program, has_secret=True)


def profile_program(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task's id or file.")],
    impl: Impl = None,
    profiles: Annotated[
        str, typer.Option(metavar="auto|NAME,...", help="Profilers by name; auto: all that fit and are installed.")
    ] = "auto",
    command: Annotated[
        str | None,
        typer.Option(
            "--profile-command",
            metavar="'PROGRAM ARGS'",
            help="A program of yours, not confined. {source}, {artefact}, {folder}, {shape}: what it looks at.",
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="DIR", help="Write texts and pictures there.")] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Say why a right program is as fast as it is.

    The program is judged first, and timed where a profiler needs its time. Exit code 0: it is profiled; 1: it is not
    right, or a profiler failed; 2: none fits its language, or what they need is missing.
    """
    from opsmith.profiling.choice import choose_profilers
    from opsmith.suites import load_tasks

    (chosen, *surplus) = load_tasks((task,), target, read_target_options(option))
    if surplus:
        raise UsageError(f"profile: {task} names {len(surplus) + 1} tasks; expected one")
    source = read_text(impl) if impl else chosen.impl
    if source is None:
        raise UsageError(f"profile: task {chosen.id} has no program of its own; try: --impl FILE")
    with make_pool(1, trust_tasks) as pool:
        profilers, lacks = choose_profilers(chosen, profiles.split(","), pool.cost, command)
        _say_lines(lacks)
        if not profilers:
            raise UsageError(
                f"profile: no profiler here says anything of programs of target {chosen.target}; try: "
                "--profile-command, or [profile] in a language file"
            )
        if command is not None:
            _say_lines(["--profile-command is a program of yours: it is not confined"])
        reports, problems = _make_reports(pool, chosen, source, profilers)
    _say_lines(problems)
    _save_reports(save, reports)
    _print_reports(reports, as_json)
    raise typer.Exit(int(bool(problems)))


def _make_reports(pool: Pool, task: Task, source: str, profilers: Profilers) -> tuple[list[ProfileReport], list[str]]:
    """What profilers say, and what went wrong; nothing of a program that is not right."""
    from opsmith.errors import OpsmithError
    from opsmith.profiling.profiler import ProfileSubject

    verdict = pool.verify(task, source)
    if not verdict.passed:
        return [], [f"task {task.id}: the program is not right: {verdict.message}"]
    reports: list[ProfileReport] = []
    problems = []
    with show_progress(f"{task.id}: it is timed") as tell:
        subject = ProfileSubject(task, source, _time_program(pool, task, source, profilers))
        for profiler in profilers:
            tell(f"{task.id}: {profiler.name}")
            try:
                reports += profiler.profile_program(subject)
            except (OpsmithError, OSError, ValueError) as error:
                problems.append(f"profile {profiler.name}: {error or type(error).__name__}")
    if not reports and not problems:
        problems.append(f"profile: task {task.id}: a run of the program says nothing that {profilers[0].name} reads")
    return reports, problems


def _time_program(pool: Pool, task: Task, source: str, profilers: Profilers) -> tuple[SpeedReport, ...]:
    """Screens at all timed sizes, where a profiler reads times."""
    from opsmith.measuring.objectives import is_timed
    from opsmith.profiling.roofline import RooflineProfiler

    if not is_timed(task) or not any(isinstance(profiler, RooflineProfiler) for profiler in profilers):
        return ()
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.orders import SpeedOrder
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.remote.filling import fill_order

    with TimingRoom() as room:
        return tuple(fill_order(SpeedOrder(task, source, MeasuringGrade.SCREEN), pool, room))


def _say_lines(lines: list[str] | tuple[str, ...]) -> None:
    for line in lines:
        print(f"opsmith: {line}", file=sys.stderr)


def _save_reports(folder: Path | None, reports: list[ProfileReport]) -> None:
    """A file for each: `remarks.txt`, `command-2.png`."""
    from opsmith.records import PICTURE

    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, report in enumerate(reports, 1):
        if report.media == PICTURE:
            (folder / f"{report.kind}-{number}.png").write_bytes(base64.b64decode(report.body))
        else:
            (folder / f"{report.kind}.txt").write_text(report.body, encoding="utf-8")


def _print_reports(reports: list[ProfileReport], as_json: bool) -> None:
    from opsmith.records import PICTURE, printable, to_json

    if as_json:
        print(json.dumps([to_json(report) for report in reports], indent=1))
        return
    for report in reports:
        is_picture = report.media == PICTURE
        body = "a picture, which --save writes\n" if is_picture else printable(report.body, "\n\t")
        print(f"== {report.kind} ==\n{body}")
