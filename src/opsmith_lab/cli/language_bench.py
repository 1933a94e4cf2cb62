"""`opsmith bench languages`: right and wrong programs of every compiled language, as a table."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson, TrustTasks, make_pool
from opsmith.cli.progress import show_progress


def bench_languages(
    languages: Annotated[
        list[str] | None, typer.Argument(metavar="[LANGUAGE...]", help="Default: all that are compiled.")
    ] = None,
    tasks: Annotated[str, typer.Option(metavar="IDS|DIR", help="Problems with a plain program.")] = "kernels",
    wrong: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Programs that say where they must be refused.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with the table.")] = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Judge right and wrong programs of compiled languages.

    Builds and verdicts are timed. Right programs are the problems' plain ones; wrong ones say in their first lines
    where they must be refused. Exit code 1: a verdict was not what it should be.
    """
    from opsmith.devices.describe import describe_device
    from opsmith.records import to_json
    from opsmith.report.tables import open_console
    from opsmith_lab.bench.language_table import list_notes, tabulate_languages, write_markdown
    from opsmith_lab.bench.languages import choose_languages, measure_languages

    names = choose_languages(languages or ())
    with show_progress("programs are judged") as tell:
        problems = tuple(filter(None, tasks.split(",")))
        rows = list(
            measure_languages(names, problems, wrong or (), lambda: make_pool(1, trust_tasks, None, None), tell)
        )
    device = describe_device()
    machine = f"{device.name or 'a processor without a name'}, {device.usable_cores or device.cores} cores"
    if markdown is not None:
        markdown.write_text(write_markdown(rows, shlex.join(["opsmith", *sys.argv[1:]]), machine), encoding="utf-8")
    if as_json:
        print(json.dumps({"machine": machine, "languages": to_json(rows)}))
    else:
        console = open_console()
        console.print(tabulate_languages(rows))
        for note in list_notes(rows):
            console.print(note, markup=False)
    raise typer.Exit(int(any(row.surprises for row in rows)))
