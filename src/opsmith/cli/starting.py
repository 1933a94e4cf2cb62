"""`opsmith init` and `new-task`: begin work of your own."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.errors import UsageError
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
        str, typer.Argument(metavar="FUNCTION", help="The function, as module:function or file.py:function.")
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="X=4,8[:TYPE]", help="A tensor's shape: sizes, or letters for dims. Once per tensor."),
    ] = None,
    value: Annotated[list[str] | None, typer.Option(metavar="X=V", help="An argument that is no tensor.")] = None,
    example: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .pt or .npz file with the arguments by name.")
    ] = None,
    problem: Annotated[
        bool, typer.Option("--problem", help="A problem file, for C, CUDA, WGSL and languages of your own.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Write the draft there; default: stdout.")
    ] = None,
) -> None:
    """Draft a task file from a PyTorch function.

    The function's module is imported and the function is run, here and with your rights: give your own code only.
    Inputs, outputs and the reference are filled in. The functions that the hardware offers are left to you; a problem
    file (--problem) needs none.
    """
    from opsmith.scaffold.draft import DraftRequest, draft_task, id_of_new_file

    task_id = id_of_new_file(output) if output is not None else ""
    with redirect_stdout(sys.stderr):  # what the user's module prints is no part of the draft
        drafted = draft_task(DraftRequest(function, tuple(shape or ()), tuple(value or ()), example, task_id, problem))
    for note in drafted.notes:
        typer.echo(f"note: {note}", err=True)
    if output is None:
        write_document(drafted.text)
    else:
        output.write_text(drafted.text, encoding="utf-8")
        missing = "look at data and sizes" if problem else "add fns and impl"
        typer.echo(f"{output}: drafted; {missing}, then: opsmith check {output}", err=True)
