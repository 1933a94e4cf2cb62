"""Options that several commands share, and what is opened from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store import Store

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the store of runs, and of reports.")]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="OPSMITH_STORE",
        help="A store for several machines: postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
    ),
]
TrustTasks = Annotated[
    bool, typer.Option("--trust-tasks", help="Run other than bundled tasks even where nothing isolates their code.")
]
Impl = Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program; default: the one in the task's file.")]


def make_store(out: Path, url: str | None) -> Store:
    """The store of the database at `url`, else of the folder `out`, made when there is none; reports go to `out`."""
    from opsmith.store import Store  # noqa: PLC0415  (SQLAlchemy is slow to import)

    if not url:
        return Store.open(out)
    if "://" not in url:
        raise UsageError(
            "--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE; try, for a folder: --out DIR"
        )
    return Store.open(url, out)


def open_store(out: Path, url: str | None = None) -> Store:
    """The store of earlier runs; one in a folder must be there: looking at it does not make one."""
    from opsmith.store import FILE  # noqa: PLC0415  (SQLAlchemy is slow to import)

    if not url and not (out if out.is_file() else out / FILE).is_file():
        raise UsageError(f"{out}: no runs here; expected a store made by `opsmith run`; try: --out DIR")
    return make_store(out, url)
