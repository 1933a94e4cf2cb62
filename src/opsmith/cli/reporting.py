"""`opsmith report` and `compare`: what came of runs, for people and for papers."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson, Out, StoreUrl, open_store
from opsmith.cli.text import STDIN
from opsmith.errors import UsageError

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or the beginning of it.")]


def add_to(app: typer.Typer) -> None:
    for command in (report, compare):
        app.command()(command)


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Runs' ids, or the beginnings of them.")],
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE|DIR|-", help="Default: OUT/reports/RUN.FORMAT; -: stdout.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="html|md|csv|parquet|svg|png", help="May be given several times."),
    ] = None,
    groups: Annotated[int, typer.Option(metavar="N", min=1, help="Groups of attempts shown of each task.")] = 12,
    out: Out = Path("runs"),
    url: StoreUrl = None,
) -> None:
    """Write what came of runs.

    html: one file that needs no host; md; csv and parquet: a row per sample; svg and png: the figures, in a folder.
    Several runs stand side by side in one file.
    """
    from opsmith.report.files import default_path, text_of, write

    wanted = _formats(kinds, output)
    with open_store(out, url) as store:
        found = list(dict.fromkeys(store.find_run(run) for run in runs))
        for kind in wanted:
            if output == STDIN:
                print(text_of(store, found, kind, groups), end="")
                continue
            where = output
            if output is not None and (len(wanted) > 1 or output.is_dir()):
                where = output / default_path(store, found, kind).name
            for path in write(store, found, kind, where, groups):
                print(path)


def compare(one: Run, other: Run, out: Out = Path("runs"), url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Compare two runs of a store, task by task."""
    from opsmith.report.comparison import comparison_lines, differing_tasks, runs_side_by_side
    from opsmith.report.paired import compare as compare_runs
    from opsmith.report.tables import output

    with open_store(out, url) as store:
        found = compare_runs(store, one, other)
    if as_json:
        print(json.dumps(found.as_json()))
        return
    console = output()
    console.print(runs_side_by_side(found))
    if found.only_one or found.only_other:
        console.print(differing_tasks(found))
    console.print(*comparison_lines(found), sep="\n", soft_wrap=True)


def _formats(given: list[str] | None, output: Path | None) -> list[str]:
    """The formats asked for, else that of the file's name, else HTML."""
    from opsmith.report.files import FORMATS, PICTURES

    suffix = output.suffix[1:] if output is not None else ""
    wanted = list(dict.fromkeys(given or [suffix if suffix in FORMATS else "html"]))
    for kind in wanted:
        if kind not in FORMATS:
            raise UsageError(f"--format: given {kind!r}; expected one of {', '.join(FORMATS)}")
    if suffix in PICTURES:
        raise UsageError(
            f"-o {output}: given one file for all figures; expected a folder; try: --format {suffix} -o DIR"
        )
    if len(wanted) > 1 and suffix in FORMATS:
        raise UsageError(f"-o {output}: given one file for {len(wanted)} formats; expected a folder; try: -o DIR")
    return wanted
