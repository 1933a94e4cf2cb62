"""`opsmith optimise`: right programs are made better."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.declared_options import declare_environment, declare_thinking, declare_tools, with_options
from opsmith.cli.options import (
    ASKED,
    LEARNING,
    MODELS,
    SPENDING,
    AnalystUrl,
    AsJson,
    BaseUrl,
    CandidateSeconds,
    Concurrency,
    DryRun,
    MaxCost,
    NoReport,
    Out,
    Seed,
    StoreUrl,
    TargetName,
    TargetOptions,
    Temperatures,
    TokensFrom,
    TrialSeconds,
    TrustTasks,
    Workers,
    declare_option,
    make_store,
    open_store,
    read_shared,
)
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report
from opsmith.cli.timing_runs import Place as RunPlace
from opsmith.cli.timing_runs import choose_run
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.judging.judge import Solution
    from opsmith.records import Task
    from opsmith.settings import Settings

RunOrTasks = Annotated[list[str], typer.Argument(metavar="RUN|TASK...", help="A run's solutions, or tasks.")]
SettingsFile = Annotated[Path | None, declare_option(ASKED, "FILE.toml", "Settings to start from.", "--settings")]
Generator = Annotated[str | None, declare_option(MODELS, "M", "The generator; a name of `opsmith models`.")]
Analyst = Annotated[
    str | None, declare_option(MODELS, "M|none", "Who suggests what to change; default: the same model.")
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="At most.", rich_help_panel=LEARNING)]
ObjectiveName = Annotated[
    str | None, declare_option(LEARNING, "O", "time, cycles, on_chip_bytes, off_chip_bytes or front.")
]
BeamSize = Annotated[int | None, declare_option(LEARNING, "N", "Programs of a task that a round starts from.")]
Attempts = Annotated[int | None, declare_option(LEARNING, "N", "For each of them in a round.")]
Fixes = Annotated[int | None, declare_option(LEARNING, "N", "Turns to mend a wrong program.")]
Refines = Annotated[
    bool | None,
    typer.Option(
        "--refine/--resample", help="Start from the best so far, or always from the first.", rich_help_panel=LEARNING
    ),
]
Plateau = Annotated[int | None, declare_option(LEARNING, "N", "Rounds without a gain that end a task.")]
ProfilerNames = Annotated[
    list[str] | None, declare_option(ASKED, "NAME", "What the analyst is shown: auto, none, or profilers.")
]
ProfileCommand = Annotated[
    str | None, declare_option(ASKED, "COMMAND", "Your own profiler: its text and PNG files are shown.")
]
MemorySize = Annotated[int | None, declare_option(ASKED, "N", "Changes of other tasks that a prompt shows; 0: none.")]
MemoryRuns = Annotated[list[str] | None, declare_option(ASKED, "RUN", "Remember its changes too.")]
ExamplePair = Annotated[
    bool | None,
    typer.Option("--example/--no-example", help="Show the language's example of a change.", rich_help_panel=ASKED),
]
ReferencePlace = Annotated[str | None, declare_option(ASKED, "TARGET|RUN|DIR", "Show a program of another language.")]
Instructions = Annotated[str | None, declare_option(ASKED, "FILE|DIR", "Your own, for each prompt.")]
SourceFiles = Annotated[list[str] | None, declare_option(ASKED, "FILE", "Shown to the generator.")]
Denied = Annotated[list[str] | None, declare_option(LEARNING, "REGEX", "No program may match it.")]
Allowed = Annotated[list[str] | None, declare_option(LEARNING, "REGEX", "Where it may.")]
MaxMeasured = Annotated[float | None, declare_option(SPENDING, "S", "Of measuring, at most.")]
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
ROUNDS = 3
_NOT_SETTINGS = frozenset({"names", "program", "settings_file", "out", "url", "no_report", "as_json", "dry_run"})
_LISTS = ("profiles", "memory_from", "source", "deny", "allow")  # options that may be given several times


def add_to(app: CommandApp) -> None:
    app.add("optimise", optimise_programs, has_secret=True)


@with_options(declare_environment, declare_tools, declare_thinking)
def optimise_programs(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    names: RunOrTasks,
    program: StartProgram = None,
    settings_file: SettingsFile = None,
    model: Generator = None,
    analyst: Analyst = None,
    base_url: BaseUrl = None,
    analyst_url: AnalystUrl = None,
    optimise: Rounds = ROUNDS,
    objective: ObjectiveName = None,
    beam: BeamSize = None,
    attempts: Attempts = None,
    fixes: Fixes = None,
    refine: Refines = None,
    plateau: Plateau = None,
    profiles: ProfilerNames = None,
    profile_command: ProfileCommand = None,
    memory: MemorySize = None,
    memory_from: MemoryRuns = None,
    example_pair: ExamplePair = None,
    reference: ReferencePlace = None,
    instructions: Instructions = None,
    source: SourceFiles = None,
    deny: Denied = None,
    allow: Allowed = None,
    temperature: Temperatures = None,
    tokens_from: TokensFrom = None,
    max_cost: MaxCost = None,
    max_measured: MaxMeasured = None,
    measure: LastGrade = None,
    target: TargetName = None,
    option: TargetOptions = None,
    seed: Seed = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    concurrency: Concurrency = None,
    workers: Workers = None,
    candidate_seconds: CandidateSeconds = None,
    trial_seconds: TrialSeconds = None,
    dry_run: DryRun = False,
    no_report: NoReport = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
    **shared: Any,
) -> None:
    """Make right programs better, round by round.

    They are a run's solutions, a file's program or the tasks' own. Each sample asks an analyst for one suggestion
    and a generator for a program; what is right is measured beside the program it came from. The same command goes on
    where an earlier one was stopped.
    """
    options = _as_settings({name: value for name, value in locals().items() if name not in _NOT_SETTINGS})
    from opsmith.config import resolve_settings

    settings = resolve_settings(settings_file, options | _choose_start(names, program, (out, url)))
    tasks, solutions = _list_work(settings, program, (out, url))
    if dry_run:
        raise typer.Exit(print_forecast(settings, tasks, partial(open_store, out, url), as_json, begins_right=True))
    place, output = partial(make_store, out, url), RunOutput(as_json=as_json, with_report=not no_report)
    raise typer.Exit(run_and_report(settings, tasks, place, output, solutions))


def _choose_start(names: Sequence[str], program: Path | None, place: RunPlace) -> dict[str, Any]:
    """The settings that say where it begins. Raises UsageError for a run with a program beside it."""
    run = choose_run(names[0], place, "optimise") if len(names) == 1 else None
    if run is not None and program is not None:
        raise UsageError("optimise: given a run and --from; expected a task beside --from")
    return {"tasks": tuple(names)} if run is None else {"from_run": run}


def _list_work(settings: Settings, program: Path | None, place: RunPlace) -> tuple[Sequence[Task], Sequence[Solution]]:
    """The tasks, and the programs to begin with that no run has: those that a run solved, or the tasks of the names."""
    from opsmith.suites import load_tasks

    run = settings.method.from_run
    if run is not None and not settings.tasks:
        with open_store(*place) as store:
            solved = store.read_experiences(store.find_run(run))
        return [solution.experience.task for solution in solved], []
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    return tasks, list_starts(tasks, program)


def _as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options by the names of the settings."""
    options = read_shared(options)
    for name in _LISTS:
        texts = options.pop(name)
        options["sources" if name == "source" else name] = tuple(texts) if texts else None
    return options


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
