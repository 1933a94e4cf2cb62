"""`opsmith optimise`: right programs are made better."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import ASKED, LEARNING, AsJson, DryRun, NoReport, StorePlace, declare_option
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report
from opsmith.cli.run_options import offer_settings
from opsmith.cli.timing_runs import choose_run
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.judging.judge import Solution
    from opsmith.records import Task
    from opsmith.settings import Settings

RunOrTasks = Annotated[list[str], typer.Argument(metavar="RUN|TASK", help="A run's solutions, or tasks.")]
SettingsFile = Annotated[Path | None, declare_option(ASKED, "FILE.toml", "Settings to start from.", "--settings")]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="Rounds at most.", rich_help_panel=LEARNING)]
LastGrade = Annotated[
    str | None,
    declare_option(
        LEARNING,
        "screen|full",
        "How leaders are measured at the end; default: full. A screen alone makes none the best.",
    ),
]
StartProgram = Annotated[
    Path | None, declare_option(ASKED, "FILE", "The program to begin with; default: the task's own.", "--from")
]


def add_to(app: CommandApp) -> None:
    app.add("optimise", optimise_programs, has_secret=True)


@offer_settings(
    "model analyst base_url analyst_url objective beam attempts fixes refine plateau profiles profile_command memory "
    "memory_from example_pair reference instructions sources deny allow temperatures tokens_from max_cost "
    "max_measured measure target target_options seed concurrency price_in price_out workers candidate_seconds "
    "trial_seconds trust_tasks pass_env name tools tool_calls tool_tokens tool_seconds reasoning think",
    measure=LastGrade,
)
def optimise_programs(  # noqa: PLR0913  (one parameter per option: that is how typer declares them)
    stated: dict[str, Any],
    names: RunOrTasks,
    program: StartProgram = None,
    settings_file: SettingsFile = None,
    rounds: Rounds = 3,
    *,
    place: StorePlace,
    dry_run: DryRun = False,
    no_report: NoReport = False,
    as_json: AsJson = False,
) -> None:
    """Make right programs better, round by round.

    They are a run's solutions, a file's program or the tasks' own. Each sample asks an analyst for one suggestion
    and a generator for a program; what is right is measured beside the program it came from. The same command goes on
    where an earlier one was stopped.
    """
    from opsmith.config import resolve_settings

    start = _choose_start(names, program, place)
    settings = resolve_settings(settings_file, stated | {"optimise": rounds} | start)
    tasks, solutions = _list_work(settings, program, place)
    if dry_run:
        raise typer.Exit(print_forecast(settings, tasks, place.open, as_json, begins_right=True))
    output = RunOutput(as_json=as_json, with_report=not no_report)
    raise typer.Exit(run_and_report(settings, tasks, place.make, output, solutions))


def _choose_start(names: Sequence[str], program: Path | None, place: StorePlace) -> dict[str, Any]:
    """The settings that say where it begins. Raises UsageError for a run with a program beside it."""
    run = choose_run(names[0], place, "optimise") if len(names) == 1 else None
    if run is not None and program is not None:
        raise UsageError("optimise: given a run and --from; expected a task beside --from")
    return {"tasks": tuple(names)} if run is None else {"from_run": run}


def _list_work(
    settings: Settings, program: Path | None, place: StorePlace
) -> tuple[Sequence[Task], Sequence[Solution]]:
    """The tasks, and the programs to begin with that no run has: those that a run solved, or the tasks of the names."""
    from opsmith.suites import load_tasks

    run = settings.method.from_run
    if run is not None and not settings.tasks:
        with place.open() as store:
            solved = store.read_experiences(store.find_run(run))
        return [solution.experience.task for solution in solved], []
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    return tasks, list_starts(tasks, program)


def list_starts(tasks: Sequence[Task], program: Path | None) -> list[Solution]:
    """The programs to begin with: that of the file, or the tasks' own. Raises UsageError for a task without one."""
    from opsmith.judging.judge import Solution

    if program is not None and len(tasks) != 1:
        raise UsageError(f"--from: given with {len(tasks)} tasks; expected one task, whose program the file holds")
    if program is not None:
        return [Solution(tasks[0], program.read_text(encoding="utf-8"))]
    without = [task.id for task in tasks if not task.impl]
    if without:
        raise UsageError(f"optimise: {', '.join(without)}: no program of their own; try: --from FILE, or a run")
    return [Solution(task, task.impl or "") for task in tasks]
