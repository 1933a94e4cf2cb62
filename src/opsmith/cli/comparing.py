"""`opsmith compare`: runs beside each other, in one table and one figure; two of them task by task."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, StorePlace
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.report.many_runs import ManyRuns
    from opsmith.store import Store

Runs = Annotated[list[str], typer.Argument(metavar="RUN", help="Names or ids of runs, or beginnings of ids.")]


def add_to(app: CommandApp) -> None:
    app.add("compare", print_comparison)


def print_comparison(
    runs: Runs,
    shown: Annotated[
        str | None,
        typer.Option("--show", metavar="solved|gain|cost|tokens|time", help="What the figure shows; default solved."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="round|cost|tokens|time", help="Over what it is shown; default round.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="SETTING|tag", help="Means over the runs that have it in common.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="DIR|FILE", help="Tables in a folder; a figure: FILE.svg, .png, .pdf.")
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--format", metavar="csv|parquet", help="Of the tables; default csv.")
    ] = None,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Compare runs: in one table, one figure, task by task.

    Runs of one suite in several languages have a row for each problem. --show and --by say how far each run had come
    after each round, or for as much money, tokens or time. With -o: tables for an evaluation of your own.
    """
    if len(runs) == 1:
        raise UsageError(f"compare: given one run, {runs[0]}; expected two or more; try: opsmith runs")
    from opsmith.report.many_runs import BY, SHOWN, compare_runs, gather_runs, turn_pair
    from opsmith.report.record import write_tables
    from opsmith.report.tables import open_console, print_fact
    from opsmith.report.views import run_view

    for option, value, choices in (("--show", shown, SHOWN), ("--by", by, BY)):
        if value is not None and value not in choices:
            raise UsageError(f"{option}: given {value!r}; expected one of {', '.join(choices)}")
    with place.open() as store:
        ids = _find_runs(store, runs)
        many, choice = gather_runs([run_view(store, run) for run in ids]), (shown or "", by or "", group or "")
        if output is not None:
            print(*_write_files(many, choice, output, kinds or ["csv"]), sep="\n")
            return
        tables = compare_runs(store, many, *choice)
    if as_json:
        print(json.dumps({"runs": ids, "tables": write_tables(tables)}))
        return
    console, is_paired = open_console(), len(ids) == 2 and "languages" not in tables
    for name, table in turn_pair(many, tables).items():
        if table.rows and not (name == "problems" and is_paired):
            console.print(table)
    for warning in dict.fromkeys(run.warning for run in many.runs if run.warning):
        named = [run.label for run in many.runs if run.warning == warning]
        print_fact(console, f"note    {'all runs' if len(named) == len(many.runs) else ', '.join(named)}: {warning}")


def _find_runs(store: Store, names: list[str]) -> list[str]:
    """Whole ids. Raises UsageError where two names mean one run."""
    ids = [store.find_run(name) for name in names]
    if twice := [name for name, run in zip(names, ids, strict=True) if ids.count(run) > 1]:
        same = ids[names.index(twice[0])]
        raise UsageError(
            f"compare: given {' and '.join(twice)}, which are one run, {same}; expected different ones; "
            "try: opsmith runs"
        )
    return ids


def _write_files(many: ManyRuns, choice: tuple[str, str, str], output: Path, kinds: list[str]) -> list[Path]:
    """The paths written: a figure, or the tables in a folder."""
    from opsmith.report.files import PICTURES, write_figure
    from opsmith.report.many_runs import draw_course, tabulate_groups, tabulate_runs, tabulate_steps, tabulate_tasks
    from opsmith.report.rows import TABLE_FILES

    suffix, (shown, by, group) = output.suffix.removeprefix("."), choice
    if suffix in TABLE_FILES:
        raise UsageError(f"-o {output}: given one file for several tables; expected a folder; try: -o {output.stem}")
    if unknown := [kind for kind in kinds if kind not in TABLE_FILES]:
        raise UsageError(f"--format: given {unknown[0]!r}; expected one of {', '.join(TABLE_FILES)}")
    if suffix in PICTURES:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_figure(draw_course(many, shown or "solved", by or "round", group), output)
        return [output]
    tables = {"runs": tabulate_runs(many), "rounds": tabulate_steps(many), "tasks": tabulate_tasks(many)}
    tables |= {"groups": tabulate_groups(many, group)} if group else {}
    output.mkdir(parents=True, exist_ok=True)
    paths = {output / f"{name}.{kind}": (kind, table) for name, table in tables.items() for kind in kinds}
    for path, (kind, table) in paths.items():
        TABLE_FILES[kind](table, path)
    return list(paths)
