"""`opsmith optimise`: right programs are made better."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.options import (
    AsJson,
    CandidateSeconds,
    Out,
    StoreUrl,
    TargetName,
    TargetOptions,
    TrialSeconds,
    TrustTasks,
    Workers,
    make_store,
    open_store,
    read_target_options,
)
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report
from opsmith.cli.timing_runs import choose_run
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.learn.judge import Solution
    from opsmith.records import Task

ROUNDS = 3
_NOT_SETTINGS = frozenset({"names", "program", "settings_file", "out", "url", "no_report", "as_json", "dry_run"})
_LISTS = ("profiles", "memory_from", "source", "deny", "allow")  # options that may be given several times
_OWN_MODEL = {"tuner": "analyst"}  # a generator that is a program -> the analyst that knows it


def add_to(app: typer.Typer) -> None:
    app.command(name="optimise")(optimise_programs)


def optimise_programs(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    names: Annotated[list[str], typer.Argument(metavar="RUN|TASK...", help="A run's solutions, or tasks.")],
    program: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="The program to begin with; default: the task's own.")
    ] = None,
    settings_file: Annotated[
        Path | None, typer.Option("--settings", metavar="FILE.toml", help="Settings to start from.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="M", help="The generator; a name of `opsmith models`.")] = None,
    analyst: Annotated[
        str | None, typer.Option(metavar="M|none", help="Who suggests what to change; default: the same model.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(metavar="U", help="A server of your own.")] = None,
    optimise: Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="At most.")] = ROUNDS,
    objective: Annotated[
        str | None, typer.Option(metavar="O", help="time, cycles, on_chip_bytes, off_chip_bytes or front.")
    ] = None,
    beam: Annotated[int | None, typer.Option(metavar="N", help="Programs of a task that a round starts from.")] = None,
    attempts: Annotated[int | None, typer.Option(metavar="N", help="For each of them in a round.")] = None,
    fixes: Annotated[int | None, typer.Option(metavar="N", help="Turns to mend a wrong program.")] = None,
    refine: Annotated[
        bool | None, typer.Option("--refine/--resample", help="Start from the best so far, or always from the first.")
    ] = None,
    plateau: Annotated[int | None, typer.Option(metavar="N", help="Rounds without a gain that end a task.")] = None,
    profiles: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What the analyst is shown: auto, none, or profilers.")
    ] = None,
    profile_command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Your own profiler: its text and PNG files are shown.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(metavar="N", help="Changes of other tasks that a prompt shows; 0: none.")
    ] = None,
    memory_from: Annotated[list[str] | None, typer.Option(metavar="RUN", help="Remember its changes too.")] = None,
    example_pair: Annotated[
        bool | None, typer.Option("--example/--no-example", help="Show the language's example of a change.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="TARGET|RUN|DIR", help="Show a program of another language.")
    ] = None,
    instructions: Annotated[str | None, typer.Option(metavar="FILE|DIR", help="Your own, for each prompt.")] = None,
    source: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Shown to the generator.")] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="REGEX", help="No program may match it.")] = None,
    allow: Annotated[list[str] | None, typer.Option(metavar="REGEX", help="Where it may.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(metavar="T", help="May be given several times.")] = None,
    tokens_from: Annotated[str | None, typer.Option(metavar="RUN", help="Spend as many tokens as it did.")] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="USD", help="Once it is spent, no request starts.")] = None,
    max_measured: Annotated[float | None, typer.Option(metavar="S", help="Of measuring, at most.")] = None,
    measure: Annotated[
        str | None, typer.Option(metavar="screen|full", help="What is best at the end; default: full.")
    ] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    seed: Annotated[int | None, typer.Option(metavar="S")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Requests in flight, at most.")] = None,
    workers: Workers = None,
    candidate_seconds: CandidateSeconds = None,
    trial_seconds: TrialSeconds = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="What it would ask and cost; nothing is asked.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no HTML report at the end.")] = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Make right programs better, round by round, from a run's solutions, a file or the tasks' own programs.

    Each sample asks an analyst for one suggestion and a generator for a program; what is right is measured beside the
    program it came from. The same command goes on where an earlier one was stopped.
    """
    options = _as_settings({name: value for name, value in locals().items() if name not in _NOT_SETTINGS})
    from opsmith.config import resolve_settings
    from opsmith.suites import load_tasks

    run = choose_run(names[0], (out, url), "optimise") if len(names) == 1 else None
    if run is not None and program is not None:
        raise UsageError("optimise: given a run and --from; expected a task beside --from")
    if run is None:
        settings = resolve_settings(settings_file, {**options, "tasks": tuple(names)})
        tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
        solutions = list_starts(tasks, program)
    else:
        settings = resolve_settings(settings_file, {**options, "from_run": run})
        tasks, solutions = _read_solved(run, partial(open_store, out, url)), []
    if dry_run:
        raise typer.Exit(print_forecast(settings, tasks, partial(open_store, out, url), as_json, begins_right=True))
    output = RunOutput(as_json=as_json, with_report=not no_report)
    raise typer.Exit(run_and_report(settings, tasks, partial(make_store, out, url), output, solutions))


def _as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options by the names of the settings."""
    temperatures = options.pop("temperature")
    options["target_options"] = read_target_options(options.pop("option")) or None
    options["temperatures"] = tuple(temperatures) if temperatures else None
    for name in _LISTS:
        texts = options.pop(name)
        options["sources" if name == "source" else name] = tuple(texts) if texts else None
    if options["analyst"] is None:
        options["analyst"] = _OWN_MODEL.get(options["model"] or "")
    return options


def list_starts(tasks: Sequence[Task], program: Path | None) -> list[Solution]:
    """The programs to begin with: that of the file, or the tasks' own. Raises UsageError for a task without one."""
    from opsmith.learn.judge import Solution

    if program is not None and len(tasks) != 1:
        raise UsageError(f"--from: given with {len(tasks)} tasks; expected one task, whose program the file holds")
    if program is not None:
        return [Solution(tasks[0], program.read_text(encoding="utf-8"))]
    without = [task.id for task in tasks if not task.impl]
    if without:
        raise UsageError(f"optimise: {', '.join(without)}: no program of their own; try: --from FILE, or a run")
    return [Solution(task, task.impl or "") for task in tasks]


def _read_solved(run: str, place: partial[Any]) -> tuple[Task, ...]:
    """The tasks that a run solved, with the programs of their files where they are bundled."""
    with place() as store:
        return tuple(solution.experience.task for solution in store.read_experiences(run))
