"""`opsmith measure RUN`: how fast is what a run solved?"""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from opsmith.cli.options import StorePlace, make_pool
from opsmith.cli.progress import show_progress
from opsmith.cli.timing_elsewhere import MeasuringPlace, measure_elsewhere
from opsmith.errors import OpsmithError, UsageError

if TYPE_CHECKING:
    from opsmith.learn.afterwards import FillOrder
    from opsmith.learn.speeds import RightProgram
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.records import Task
    from opsmith.store import Store
    from opsmith.store.measurements import StoredSpeed


def choose_run(name: str, place: StorePlace, command: str = "measure") -> str | None:
    """The run that is called so, or begins so; None: it is a task. Raises UsageError for what is neither.

    A name of both means the task, which is said.
    """
    from opsmith.suites import find_files

    try:
        find_files((name,))
    except UsageError as error:
        return _find_run(name, place, error)
    if (run := _find_namesake(name, place)) is not None:
        print(
            f"opsmith: {name} is a task, and begins a run's id; for the run: opsmith {command} {run}", file=sys.stderr
        )
    return None


def _find_run(name: str, place: StorePlace, no_task: UsageError) -> str:
    if not place.is_there:
        raise no_task
    with place.open() as store:
        try:
            return store.find_run(name)
        except UsageError as error:
            raise UsageError(f"{no_task}; {error}") from None


def _find_namesake(name: str, place: StorePlace) -> str | None:
    """The run that a task's name begins, too; None as well where the store cannot be asked: no run was asked for."""
    try:
        with place.open() as store:
            return store.find_run(name)
    except OpsmithError:
        return None


def measure_run(
    run: str,
    place: StorePlace,
    is_full: bool,
    is_again: bool,
    trust_tasks: bool,
    as_json: bool,
    measuring_place: MeasuringPlace,
) -> int:
    """The exit code. What is measured is stored at once, so that the same command goes on where one was stopped."""
    from opsmith.learn.afterwards import list_solved_programs, measure_solved
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.store.pages import session_settings

    grade = MeasuringGrade.FULL if is_full else MeasuringGrade.SCREEN
    with place.open() as store, store.lock(run):
        settings = session_settings(store, run)
        programs = list_solved_programs(store, run, load_own_tasks(settings))
        _refuse_unmeasurable(run, programs)
        if measuring_place.is_elsewhere:
            return _measure_run_elsewhere(store, run, programs, grade, measuring_place, trust_tasks, as_json)
        with show_progress("it is measured") as tell, fill_orders(settings, trust_tasks) as fill:
            for speed in measure_solved(store, run, programs, grade, fill, is_again):
                tell(f"{speed.task}: measured at {speed.report.measurement.shape_set}")
        latest = _list_latest(store, run, grade)
    _print_speeds(run, latest, as_json)
    return int(any(speed.report.measurement.reason for speed in latest))


def _measure_run_elsewhere(
    store: Store,
    run: str,
    programs: Sequence[RightProgram],
    grade: MeasuringGrade,
    place: MeasuringPlace,
    trust_tasks: bool,
    as_json: bool,
) -> int:
    """The exit code. All programs go there together; equal results that are merged again change nothing."""
    from opsmith.measuring.orders import SpeedOrder
    from opsmith.remote.filling import make_request
    from opsmith.store.measurements import StoredSpeed, speed_rows

    requests = [
        make_request(SpeedOrder(program.task, program.source, grade, partner=program.partner)) for program in programs
    ]
    rows = measure_elsewhere(place, requests, trust_tasks)
    if rows is None:
        return 0
    speeds = [
        StoredSpeed(program.task.id, program.sample, report)
        for program, reports in zip(programs, rows, strict=True)
        for report in reports
    ]
    for speed in speeds:
        store.put(speed_rows(run, speed)).result()
    _print_speeds(run, speeds, as_json)
    return int(any(speed.report.measurement.reason for speed in speeds))


def _refuse_unmeasurable(run: str, programs: Sequence[RightProgram]) -> None:
    from opsmith.measuring.orders import explain_lack_of_figures

    if not programs:
        raise UsageError(
            f"run {run}: it has solved nothing itself and made nothing better; expected programs to be measured"
        )
    if lack := explain_lack_of_figures(programs[0].task):
        raise UsageError(f"run {run}: {lack}")


def load_own_tasks(settings: dict[str, Any]) -> Sequence[Task]:
    """The run's tasks with the programs of their files; nothing where the files are gone, which is said."""
    from opsmith.suites import load_tasks

    try:
        return load_tasks(settings.get("tasks", ()), settings.get("target"), settings.get("target_options", {}))
    except OpsmithError as error:
        print(f"opsmith: the tasks' own programs are not here, so that times stand alone: {error}", file=sys.stderr)
        return ()


@contextmanager
def fill_orders(settings: dict[str, Any], trust_tasks: bool) -> Iterator[FillOrder]:
    from opsmith.measuring.loop import TimingRoom
    from opsmith.remote.filling import fill_order

    with make_pool(1, trust_tasks, settings=settings) as pool, TimingRoom() as room:
        yield partial(fill_order, pool=pool, room=room)


def _list_latest(store: Store, run: str, grade: MeasuringGrade) -> list[StoredSpeed]:
    """Of each program and shape set, what was measured last with this grade."""
    from opsmith.measuring.orders import name_measurement

    speeds = [speed for speed in store.read_speeds(run) if speed.report.measurement.grade is grade]
    return [*{name_measurement(speed.task, speed.report.measurement): speed for speed in speeds}.values()]


def _print_speeds(run: str, speeds: Sequence[StoredSpeed], as_json: bool) -> None:
    from opsmith.measuring.record import write_report
    from opsmith.report.speeds import print_speeds
    from opsmith.report.tables import open_console

    if as_json:
        rows = [{"task": speed.task, "sample": speed.sample} | write_report(speed.report) for speed in speeds]
        print(json.dumps({"run": run, "measurements": rows}, indent=1))
        return
    print_speeds(open_console(), speeds)
