"""`opsmith report`: what came of runs, for people and for papers."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, StorePlace
from opsmith.cli.progress import show_progress
from opsmith.cli.text import STDIN
from opsmith.errors import UsageError
from opsmith.terminal import write_document

if TYPE_CHECKING:
    from opsmith.store import Store

RunsOrAll = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN", help="Runs' ids, or the beginnings of them; default: the newest run."),
]


def add_to(app: CommandApp) -> None:
    app.add("report", write_reports)


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
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Write what came of runs.

    html: one file that needs no host; md; csv and parquet: a row per sample; svg, png, pdf: the figures, in a folder.
    Several runs stand side by side in one file; runs of several languages with a column for each language.
    """
    from opsmith.report.files import default_path, text_of, write_report
    from opsmith.report.tables import count_noun

    if as_json and output == STDIN:
        raise UsageError("report --json: given -o -; expected files, whose paths it prints")
    formats, written = _choose_formats(kinds, output), []
    with place.open() as store:
        ids = _choose_runs(store, runs, every)
        for kind in formats:
            if output == STDIN:
                write_document(text_of(store, ids, kind, groups))
                continue
            where = output
            if output is not None and (len(formats) > 1 or output.is_dir()):
                where = output / default_path(store, ids, kind).name
            with show_progress(f"{kind} of {count_noun(len(ids), 'run')} is written"):
                written += write_report(store, ids, kind, where, groups)
    paths = [str(path) for path in written]
    if paths:
        print(json.dumps({"runs": ids, "files": paths}) if as_json else "\n".join(paths))


def _choose_runs(store: Store, runs: list[str] | None, every: bool) -> list[str]:
    """Whole ids, each once; of all of them the oldest first."""
    from opsmith.store.pages import run_ids

    if runs and every:
        raise UsageError("report: given both runs and --all; expected one of them; try: opsmith runs")
    if not every:
        return list(dict.fromkeys(store.find_run(run) for run in runs or (None,)))
    if ids := [run for run, _ in sorted(run_ids(store), key=lambda pair: pair[1])]:
        return ids
    raise UsageError("report --all: the store holds no run; try: opsmith run")


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
