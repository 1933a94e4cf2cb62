"""The files of a report, and where they lie. One per format, written whole or not at all; figures in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.report.attempts import GROUPS
from opsmith.report.curves import Figure
from opsmith.report.document import write_document
from opsmith.report.many_runs import draw_courses, gather_runs, list_figures
from opsmith.report.markdown import write_markdown
from opsmith.report.rendering import convert_svg, render_pdf, render_png, render_svg
from opsmith.report.rows import to_csv, write_csv, write_parquet
from opsmith.report.run_tables import write_json
from opsmith.report.views import run_view
from opsmith.store import Store
from opsmith.store.database import file_name

TEXTS: dict[str, Callable[[Store, Sequence[str]], str]] = {
    "html": write_document, "md": write_markdown, "csv": to_csv, "json": write_json,
}  # fmt: skip
PICTURES = ("svg", "png", "pdf")
FORMATS = (*TEXTS, "parquet", *PICTURES)


def text_of(store: Store, runs: Sequence[str], kind: str, groups: int = GROUPS) -> str:
    """A format that is text. Raises UsageError for one that is not."""
    if kind not in TEXTS:
        raise UsageError(f"--format {kind}: given stdout; expected a file, since it is no text; try: -o FILE")
    return write_document(store, runs, groups) if kind == "html" else TEXTS[kind](store, runs)


def write_report(
    store: Store, runs: Sequence[str], kind: str, where: Path | None = None, groups: int = GROUPS
) -> list[Path]:
    """Write one format of the report of these runs (whole ids); the paths written.

    `where`: the file, for figures the folder; by default beside the store, under `reports`.
    """
    path = where or default_path(store, runs, kind)
    if kind in PICTURES:
        return list(_write_figures(store, runs, kind, path))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.part")
    if kind == "parquet":
        write_parquet(store, runs, draft)
    elif kind == "csv":
        with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            write_csv(store, runs, out)
    else:
        draft.write_text(text_of(store, runs, kind, groups), encoding="utf-8", errors="backslashreplace")
    os.replace(draft, path)
    return [path]


def default_path(store: Store, runs: Sequence[str], kind: str) -> Path:
    """`reports/RUN.html` beside the store; figures in a folder of their own."""
    suffix = f"-and-{len(runs) - 1}-more" if len(runs) > 1 else ""
    name = f"{file_name(runs[0])}{suffix}" + ("-figures" if kind in PICTURES else f".{kind}")
    return store.folder / "reports" / name


def write_picture(store: Store, run: str, task: str, picture: str, where: Path | None = None) -> Path:
    """A run's task, drawn as the file's suffix says; by default an SVG beside the reports, under the names of both."""
    path = where or store.folder / "reports" / f"{file_name(run)}-{file_name(task)}.svg"
    if path.suffix[1:] not in PICTURES:
        raise UsageError(f"-o {path}: given {path.suffix or 'no suffix'}; expected a file in .svg, .png or .pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = picture.encode("utf-8", "backslashreplace")
    path.write_bytes(text if path.suffix == ".svg" else convert_svg(picture, path.suffix[1:]))
    return path


def _write_figures(store: Store, runs: Sequence[str], kind: str, folder: Path) -> Iterator[Path]:
    """For papers: black on white."""
    folder.mkdir(parents=True, exist_ok=True)
    views = [run_view(store, run) for run in runs]
    for figure in list_figures(views[0]) if len(views) == 1 else draw_courses(gather_runs(views)):
        path = folder / f"{figure.name}.{kind}"
        write_figure(figure, path)
        yield path


def write_figure(figure: Figure, path: Path) -> None:
    """One figure for a paper, as the file's suffix says: one of PICTURES."""
    if path.suffix == ".svg":
        path.write_text(render_svg(figure.spec, "paper"), encoding="utf-8")
    else:
        path.write_bytes(render_png(figure.spec) if path.suffix == ".png" else render_pdf(figure.spec))
