"""`opsmith pareto RUN...`: which right programs of runs does no other one beat?"""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, StorePlace, TrustTasks
from opsmith.cli.progress import show_progress
from opsmith.cli.timing_runs import fill_orders, load_own_tasks
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.records import Objective, Task
    from opsmith.results.fronts import TaskFront
    from opsmith.store import Store


def add_to(app: CommandApp) -> None:
    app.add("pareto", print_fronts)


def print_fronts(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Ids of runs, or the beginnings of them.")],
    objectives: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="With commas: time, or cycles, on_chip_bytes, off_chip_bytes; default: all that the language has.",
        ),
    ] = "",
    is_full: Annotated[
        bool, typer.Option("--full", help="Measure times in the full grade, which may be published.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the first two objectives, with a field for each task.")
    ] = None,
    *,
    place: StorePlace,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Show which right programs of runs no other one beats.

    What is missing of a right program's figures is counted or timed first, once for isomorphic ones, and stored.
    Several runs make one front for each task. Figures stand beside those of the task's own program.
    """
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.report.fronts import print_task_fronts, write_fronts_json
    from opsmith.report.tables import open_console
    from opsmith.results.fronts import read_fronts

    grade = MeasuringGrade.FULL if is_full else MeasuringGrade.SCREEN
    with place.open() as store:
        names = [store.find_run(run) for run in dict.fromkeys(runs)]
        own = load_common_tasks(store, names)
        figures = choose_objectives(own[0], objectives)
        for run in names:
            complete_figures(store, run, own, figures, grade, trust_tasks)
        fronts = read_fronts(store, names, own, figures)
    if figure is not None:
        _draw_fronts(fronts, figure)
    if as_json:
        print(json.dumps(write_fronts_json(names, fronts), indent=1))
    else:
        print_task_fronts(open_console(), fronts)


def choose_objectives(task: Task, text: str) -> tuple[Objective, ...]:
    """The figures that were asked for, or all that the language says. Raises UsageError."""
    from opsmith.measuring.objectives import FRONT, choose_figures, list_objectives, require_figures

    names = tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
    offered = {objective.name: objective for objective in list_objectives(task)}
    return tuple(offered[name] for name in (require_figures(task, names) if names else choose_figures(task, FRONT)))


def complete_figures(
    store: Store,
    run: str,
    own: Sequence[Task],
    objectives: Sequence[Objective],
    grade: MeasuringGrade,
    trust_tasks: bool,
) -> None:
    """Count or time what is missing of a run's right programs, and store it."""
    from opsmith.learn.afterwards import list_right_programs, measure_figures
    from opsmith.measuring.record import name_unit
    from opsmith.store.pages import session_settings

    programs = list_right_programs(store, run, own)
    with (
        store.lock(run),
        show_progress("it is measured") as tell,
        fill_orders(session_settings(store, run), trust_tasks) as fill,
    ):
        for speed in measure_figures(store, run, programs, grade, fill, [objective.name for objective in objectives]):
            measured = speed.report.measurement.objective
            tell(f"{speed.task}: {name_unit(measured) or measured.name}")


def load_common_tasks(store: Store, runs: Sequence[str]) -> list[Task]:
    """The tasks of all runs, with the programs of their files. Raises UsageError where runs ask for different ones."""
    from opsmith.store.pages import session_settings

    tasks: dict[str, Task] = {}
    for run in runs:
        files = {task.digest: task for task in load_own_tasks(session_settings(store, run))}
        for task in store.read_tasks(run):
            present = tasks.setdefault(task.id, files.get(task.digest, task))
            if present.digest != task.digest:
                raise UsageError(f"pareto: task {task.id} of run {run} is not that of the other runs; try: one run")
    if not tasks:
        raise UsageError(f"pareto: run {runs[0]} has no task")
    return sorted(tasks.values(), key=lambda task: task.id)


def _draw_fronts(fronts: Sequence[TaskFront], path: Path) -> None:
    from opsmith.report.curves import draw_fronts
    from opsmith.report.files import PICTURES, write_figure

    if path.suffix[1:] not in PICTURES:
        raise UsageError(f"--figure {path}: expected a file that ends in .svg, .png or .pdf")
    drawn = draw_fronts(fronts)
    if drawn is None:
        raise UsageError("--figure: expected two figures or more, and a task with its own program and a right one")
    write_figure(drawn, path)
