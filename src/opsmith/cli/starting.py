"""`opsmith init` and `new-task`: begin work of your own."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the project; default: the folder's.")] = None,
) -> None:
    """Make a project of your own that works.

    A task, a small language as a target, settings of runs, tests.
    """
    from opsmith.scaffold.project import init

    for path in init(folder, name):
        print(path)
    typer.echo(f"next: opsmith check {folder / 'tasks'}; opsmith run {folder / 'experiment.toml'}", err=True)
