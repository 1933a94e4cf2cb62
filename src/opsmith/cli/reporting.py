"""`opsmith report` and `compare`: what came of runs, for people and for papers."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.options import AsJson, Out, StoreUrl, open_store
from opsmith.cli.text import STDIN
from opsmith.errors import UsageError
from opsmith.terminal import write_document

if TYPE_CHECKING:
    from rich.table import Table

    from opsmith.store import Store

Runs = Annotated[list[str], typer.Argument(metavar="RUN", help="Runs' ids, or the beginnings of them.")]


def add_to(app: typer.Typer) -> None:
    app.command(name="report")(write_reports)
    app.command(name="compare")(print_comparison)


def write_reports(
    runs: Runs,
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
    from opsmith.report.files import default_path, text_of, write_report

    formats = _choose_formats(kinds, output)
    with open_store(out, url) as store:
        ids = list(dict.fromkeys(store.find_run(run) for run in runs))
        for kind in formats:
            if output == STDIN:
                write_document(text_of(store, ids, kind, groups))
                continue
            where = output
            if output is not None and (len(formats) > 1 or output.is_dir()):
                where = output / default_path(store, ids, kind).name
            for path in write_report(store, ids, kind, where, groups):
                print(path)


def print_comparison(runs: Runs, out: Out = Path("runs"), url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Compare two runs of a store, task by task.

    Runs of one suite in several targets: a row per problem, a column per run.
    """
    if len(runs) == 1:
        raise UsageError(f"compare: given one run, {runs[0]}; expected two or more; try: opsmith runs")
    with open_store(out, url) as store:
        data, tables = (_compare_two if len(runs) == 2 else _compare_many)(store, runs)
    print(json.dumps(data)) if as_json else _print_tables(tables)


def _compare_two(store: Store, runs: list[str]) -> tuple[dict[str, Any], list[Table | str]]:
    from opsmith.report.comparison import comparison_lines, differing_tasks, problems_by_target, runs_side_by_side
    from opsmith.report.paired import compare_runs

    comparison = compare_runs(store, *runs)
    views = (comparison.first, comparison.second)
    tables: list[Table | str] = [runs_side_by_side(views)]
    if comparison.problems:
        tables.append(problems_by_target(views, comparison.problems))
    elif comparison.only_one or comparison.only_other:
        tables.append(differing_tasks(comparison))
    return comparison.as_json(), [*tables, *comparison_lines(comparison)]


def _compare_many(store: Store, runs: list[str]) -> tuple[dict[str, Any], list[Table | str]]:
    from opsmith.report.by_target import align_problems
    from opsmith.report.comparison import problems_by_target, runs_side_by_side
    from opsmith.report.paired import runs_json
    from opsmith.report.views import run_view

    views = [run_view(store, run) for run in runs]
    problems = align_problems(store, views)
    return runs_json(views, problems), [runs_side_by_side(views), problems_by_target(views, problems)]


def _print_tables(tables: list[Table | str]) -> None:
    """Tables at the terminal's width; lines as they are."""
    from opsmith.report.tables import open_console

    console = open_console()
    for table in tables:
        console.print(table, soft_wrap=isinstance(table, str))


def _choose_formats(options: list[str] | None, output: Path | None) -> list[str]:
    """The formats asked for, else that of the file's name, else HTML."""
    from opsmith.report.files import FORMATS, PICTURES

    suffix = output.suffix[1:] if output is not None else ""
    formats = list(dict.fromkeys(options or [suffix if suffix in FORMATS else "html"]))
    for kind in formats:
        if kind not in FORMATS:
            raise UsageError(f"--format: given {kind!r}; expected one of {', '.join(FORMATS)}")
    if suffix in PICTURES:
        raise UsageError(
            f"-o {output}: given one file for all figures; expected a folder; try: --format {suffix} -o DIR"
        )
    if len(formats) > 1 and suffix in FORMATS:
        raise UsageError(f"-o {output}: given one file for {len(formats)} formats; expected a folder; try: -o DIR")
    return formats
