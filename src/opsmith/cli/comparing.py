"""`opsmith compare`: runs beside each other, in one table and one figure; two of them task by task."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, Out, StoreUrl, open_store
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from opsmith.report.record import DataTable
    from opsmith.store import Store

Runs = Annotated[list[str], typer.Argument(metavar="RUN...", help="Names or ids of runs, or beginnings of ids.")]


@dataclass(frozen=True)
class CourseChoice:
    """What is shown of many runs; "": nobody chose."""

    shown: str
    by: str
    group: str

    def __bool__(self) -> bool:
        return bool(self.shown or self.by or self.group)


def add_to(app: CommandApp) -> None:
    app.add("compare", print_comparison)


def print_comparison(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    runs: Runs,
    shown: Annotated[
        str | None,
        typer.Option("--show", metavar="solved|gain|cost|tokens|time", help="What the figure is of; default solved."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="round|cost|tokens|time", help="And by what; default round.")
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
    out: Out = Path("runs"),
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: in one table, one figure, task by task.

    Runs of one suite in several languages have a row for each problem. --show and --by say how far each run had come
    after each round, or for as much money, tokens or time. With -o: tables for an evaluation of your own.
    """
    if len(runs) == 1:
        raise UsageError(f"compare: given one run, {runs[0]}; expected two or more; try: opsmith runs")
    from opsmith.report.many_runs import BY, SHOWN

    for option, value, choices in (("--show", shown, SHOWN), ("--by", by, BY)):
        if value is not None and value not in choices:
            raise UsageError(f"{option}: given {value!r}; expected one of {', '.join(choices)}")
    with open_store(out, url) as store:
        ids = _find_runs(store, runs)
        choice = CourseChoice(shown or "", by or "", group or "")
        if output is not None:
            print(*_write_files(store, ids, choice, output, kinds or ["csv"]), sep="\n")
            return
        data, parts = _compare(store, ids, choice)
    if as_json:
        print(json.dumps(data))
    else:
        _print_parts(parts)


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


def _compare(store: Store, ids: list[str], choice: CourseChoice) -> tuple[dict[str, Any], list[RenderableType]]:
    """For machines, and for people."""
    from opsmith.report.by_target import align_problems
    from opsmith.report.comparison import comparison_lines, differing_tasks, problems_by_target, runs_side_by_side
    from opsmith.report.languages import read_languages, tabulate_languages
    from opsmith.report.many_runs import read_many, tabulate_course, tabulate_groups, tabulate_runs
    from opsmith.report.paired import compare_views, runs_json
    from opsmith.report.record import write_tables
    from opsmith.report.views import run_view

    views = [run_view(store, run) for run in ids]
    many, languages = read_many(store, views), read_languages(store, views)
    tables = {"runs": tabulate_runs(many)}
    if choice.group:
        tables["groups"] = tabulate_groups(many, choice.group)
    if choice or len(ids) > 2:
        tables["course"] = tabulate_course(many, choice.shown or "solved", choice.by or "round", choice.group)
    beside = {"languages": languages.as_json()} if languages is not None else {}
    of_languages = [tabulate_languages(languages)] if languages is not None else []
    if len(views) == 2:
        comparison = compare_views(store, views[0], views[1])
        parts: list[RenderableType] = [runs_side_by_side(views), *list(tables.values())[1:], *of_languages]
        if languages is not None:
            parts.append(problems_by_target(views, comparison.problems))
        elif comparison.only_one or comparison.only_other:
            parts.append(differing_tasks(comparison))
        data = comparison.as_json()
        return {**data, **beside, "tables": write_tables(tables)}, [*parts, *comparison_lines(comparison)]
    problems = align_problems(store, views)
    warnings = {view.warning: view.label for view in reversed(views) if view.warning}
    notes = [f"note    {name}: {warning}" for warning, name in warnings.items()]
    data = {**runs_json(views, problems), **beside, "tables": write_tables(tables)}
    return data, [*tables.values(), *of_languages, problems_by_target(views, problems), *notes]


def _write_files(store: Store, ids: list[str], choice: CourseChoice, output: Path, kinds: list[str]) -> list[Path]:
    """The paths written: a figure, or the tables in a folder."""
    from opsmith.report.files import PICTURES, write_figure
    from opsmith.report.many_runs import (
        draw_course,
        read_many,
        tabulate_groups,
        tabulate_runs,
        tabulate_steps,
        tabulate_tasks,
    )
    from opsmith.report.rows import TABLE_FILES
    from opsmith.report.views import run_view

    suffix = output.suffix.removeprefix(".")
    if suffix in TABLE_FILES:
        raise UsageError(f"-o {output}: given one file for several tables; expected a folder; try: -o {output.stem}")
    if unknown := [kind for kind in kinds if kind not in TABLE_FILES]:
        raise UsageError(f"--format: given {unknown[0]!r}; expected one of {', '.join(TABLE_FILES)}")
    many = read_many(store, [run_view(store, run) for run in ids])
    if suffix in PICTURES:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_figure(draw_course(many, choice.shown or "solved", choice.by or "round", choice.group), output)
        return [output]
    tables = {"runs": tabulate_runs(many), "rounds": tabulate_steps(many), "tasks": tabulate_tasks(many)}
    if choice.group:
        tables["groups"] = tabulate_groups(many, choice.group)
    return _write_tables(tables, output, kinds)


def _write_tables(tables: dict[str, DataTable], folder: Path, kinds: list[str]) -> list[Path]:
    from opsmith.report.rows import TABLE_FILES

    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.{kind}": (kind, table) for name, table in tables.items() for kind in kinds}
    for path, (kind, table) in paths.items():
        TABLE_FILES[kind](table, path)
    return list(paths)


def _print_parts(parts: list[RenderableType]) -> None:
    """Tables and lines at the terminal's width."""
    from opsmith.report.tables import open_console, print_fact

    console = open_console()
    for part in parts:
        if isinstance(part, str):
            print_fact(console, part)
        else:
            console.print(part)
