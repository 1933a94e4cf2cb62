"""What commands of `opsmith bench` share: options, and how they say what was measured."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

StepTasks = Annotated[list[str] | None, typer.Argument(metavar="TASK", help="Default: the 26 tasks.")]
KernelTasks = Annotated[list[str] | None, typer.Argument(metavar="TASK", help="Default: kernels.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with the table.")]


def print_figures(as_json: bool, figures: object, *tables: RenderableType, lines: Iterable[str] = ()) -> None:
    """As JSON, or else as tables with lines below them."""
    from opsmith.report.tables import open_console  # noqa: PLC0415  (`opsmith --help` must not pay for it)

    if as_json:
        print(json.dumps(figures))
        return
    console = open_console()
    console.print(*tables)
    for line in lines:
        console.print(line, markup=False)


def name_command() -> str:
    """The command line that runs."""
    return shlex.join(["opsmith", *sys.argv[1:]])
