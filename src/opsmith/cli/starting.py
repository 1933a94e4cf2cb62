"""`opsmith init` and `new-task`: begin work of your own."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import TargetName
from opsmith.errors import UsageError
from opsmith.suites import DEFAULT_TARGET
from opsmith.terminal import write_document


def add_to(app: CommandApp) -> None:
    app.add("init", init_project, has_tables=False)
    app.add("new-task", new_task, has_tables=False)


def init_project(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The project's name; default: the folder's.")] = None,
    command: Annotated[bool, typer.Option("--command", help="A language of commands: compiler, simulator.")] = False,
    executed: Annotated[
        bool, typer.Option("--executed", help="A language in Python whose programs are executed.")
    ] = False,
) -> None:
    """Make a project of your own that works.

    With --command: your compiler and simulator, in one TOML file. With --executed: programs that Python runs.
    Without either: a small language that is interpreted, with tasks, settings of runs and tests.
    """
    from opsmith.scaffold.project import COMMAND, EXECUTED, INTERPRETED, write_project

    if command and executed:
        raise UsageError("init: given --command and --executed; expected one of them")
    kind = COMMAND if command else EXECUTED if executed else INTERPRETED
    for path in write_project(folder, name, kind):
        print(path)
    target = f" --target {folder / 'language.toml'}" if command else ""
    steps = [f"opsmith check {folder / 'problems' if command else folder / 'tasks'}{target}"]
    steps += [f"opsmith verify {folder / 'problems'}{target}"] if command else []
    steps += [f"opsmith run {folder / 'experiment.toml'}{target}"]
    typer.echo("next: " + "\n      ".join(steps), err=True)


def new_task(
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION", help="As module:function or file.py:function; or a torch.nn.Module.")
    ],
    target: TargetName = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="X=4,8[:TYPE]", help="A tensor's shape: sizes, or letters for dims. Once per tensor."),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="X=V", help="An argument that is no tensor; of a module: of its constructor."),
    ] = None,
    example: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .pt or .npz file with the arguments by name.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Write the draft there; default: stdout.")
    ] = None,
) -> None:
    """Draft a task from a PyTorch function or module: a problem file with --target, a task in STeP without.

    The function's module is imported and the function is run, here and with your rights: give your own code only.
    Inputs, sizes, outputs and the reference are filled in. A problem file has all that a task needs, and the frame of a
    program lies beside it, in plain/. In STeP the functions that the hardware offers are left to you.
    """
    from opsmith.scaffold.draft import DraftRequest, draft_task, id_of_new_file, write_draft

    task_id = id_of_new_file(output) if output is not None else ""
    request = DraftRequest(function, tuple(shape or ()), tuple(value or ()), example, task_id)
    with redirect_stdout(sys.stderr):  # what the user's module prints is no part of the draft
        if target in (None, DEFAULT_TARGET):
            drafted = draft_task(request)
        else:
            from opsmith.imports.kernelbench.folder import ANALYSES
            from opsmith.imports.worker import ImportWorkers
            from opsmith.scaffold.problem import draft_problem

            with ImportWorkers(trust=True, services=ANALYSES) as workers:
                drafted = draft_problem(request, target, workers)
    for note in drafted.notes:
        typer.echo(f"note: {note}", err=True)
    if output is None:
        write_document(drafted.text)
        return
    typer.echo(write_draft(drafted, output), err=True)
