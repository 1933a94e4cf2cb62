"""`opsmith report` and `compare`: what came of runs, for people and for papers."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, Out, StoreUrl, open_store
from opsmith.cli.progress import show_progress
from opsmith.cli.text import STDIN
from opsmith.errors import UsageError
from opsmith.terminal import write_document

if TYPE_CHECKING:
    from rich.table import Table

    from opsmith.report.languages import LanguageTable
    from opsmith.store import Store

RunsOrAll = Annotated[
    list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs' ids, or the beginnings of them; see --all.")
]
Runs = Annotated[list[str], typer.Argument(metavar="RUN", help="Runs' ids, or the beginnings of them.")]


def add_to(app: CommandApp) -> None:
    app.add("report", write_reports)
    app.add("compare", print_comparison)


def write_reports(
    runs: RunsOrAll = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE|DIR|-", help="Default: OUT/reports/RUN.FORMAT; -: stdout.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="html|md|csv|parquet|svg|png|pdf", help="May be given several times."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the store.")] = False,
    groups: Annotated[
        int, typer.Option(metavar="N", min=1, help="Groups of attempts that are shown of each task.")
    ] = 12,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write what came of runs.

    html: one file that needs no host; md; csv and parquet: a row per sample; svg, png, pdf: the figures, in a folder.
    Several runs stand side by side in one file; runs of several languages with a column for each language.
    """
    from opsmith.report.files import default_path, text_of, write_report

    if as_json and output == STDIN:
        raise UsageError("report --json: given -o -; expected files, whose paths it prints")
    formats, written = _choose_formats(kinds, output), []
    with open_store(out, url) as store:
        ids = _choose_runs(store, runs, every)
        for kind in formats:
            if output == STDIN:
                write_document(text_of(store, ids, kind, groups))
                continue
            where = output
            if output is not None and (len(formats) > 1 or output.is_dir()):
                where = output / default_path(store, ids, kind).name
            with show_progress(f"{kind} of {len(ids)} run{'s' * (len(ids) != 1)} is written"):
                written += write_report(store, ids, kind, where, groups)
    paths = [str(path) for path in written]
    if paths:
        print(json.dumps({"runs": ids, "files": paths}) if as_json else "\n".join(paths))


def _choose_runs(store: Store, runs: list[str] | None, every: bool) -> list[str]:
    """Whole ids, each once; of all of them the oldest first."""
    from opsmith.store.pages import run_ids

    if bool(runs) == every:
        actual = "both runs and --all" if runs else "no run"
        raise UsageError(f"report: given {actual}; expected one of them; try: opsmith runs")
    if not every:
        return list(dict.fromkeys(store.find_run(run) for run in runs or ()))
    if ids := [run for run, _ in sorted(run_ids(store), key=lambda pair: pair[1])]:
        return ids
    raise UsageError("report --all: the store holds no run; try: opsmith run")


def print_comparison(runs: Runs, out: Out = Path("runs"), url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Compare two runs of a store, task by task.

    Runs of one suite in several targets: a row per problem, a column per run.
    """
    if len(runs) == 1:
        raise UsageError(f"compare: given one run, {runs[0]}; expected two or more; try: opsmith runs")
    with open_store(out, url) as store:
        ids = [store.find_run(run) for run in runs]
        if twice := [name for name, run in zip(runs, ids, strict=True) if ids.count(run) > 1]:
            same = ids[runs.index(twice[0])]
            raise UsageError(
                f"compare: given {' and '.join(twice)}, which are one run, {same}; expected different ones; "
                "try: opsmith runs"
            )
        data, tables = (_compare_two if len(runs) == 2 else _compare_many)(store, ids)
    print(json.dumps(data)) if as_json else _print_tables(tables)


def _compare_two(store: Store, runs: list[str]) -> tuple[dict[str, Any], list[Table | str]]:
    from opsmith.report.comparison import comparison_lines, differing_tasks, problems_by_target, runs_side_by_side
    from opsmith.report.languages import read_languages, tabulate_languages
    from opsmith.report.paired import compare_runs

    comparison = compare_runs(store, *runs)
    views = (comparison.first, comparison.second)
    languages = read_languages(store, views)
    tables: list[Table | str] = [runs_side_by_side(views)]
    if languages is not None:
        tables += [tabulate_languages(languages), problems_by_target(views, comparison.problems)]
    elif comparison.only_one or comparison.only_other:
        tables.append(differing_tasks(comparison))
    return _add_languages(comparison.as_json(), languages), [*tables, *comparison_lines(comparison)]


def _compare_many(store: Store, runs: list[str]) -> tuple[dict[str, Any], list[Table | str]]:
    from opsmith.report.by_target import align_problems
    from opsmith.report.comparison import problems_by_target, runs_side_by_side
    from opsmith.report.languages import read_languages, tabulate_languages
    from opsmith.report.paired import runs_json
    from opsmith.report.views import run_view

    views = [run_view(store, run) for run in runs]
    problems, languages = align_problems(store, views), read_languages(store, views)
    tables: list[Table | str] = [runs_side_by_side(views)]
    tables += [tabulate_languages(languages)] if languages is not None else []
    return _add_languages(runs_json(views, problems), languages), [*tables, problems_by_target(views, problems)]


def _add_languages(data: dict[str, Any], languages: LanguageTable | None) -> dict[str, Any]:
    return {**data, **({"languages": languages.as_json()} if languages is not None else {})}


def _print_tables(tables: list[Table | str]) -> None:
    """Tables and lines at the terminal's width."""
    from opsmith.report.tables import open_console, print_fact

    console = open_console()
    for table in tables:
        if isinstance(table, str):
            print_fact(console, table)
        else:
            console.print(table)


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
