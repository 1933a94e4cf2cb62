"""Options that several commands share, and what is opened from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store import Store

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the store of runs.")]
TrustTasks = Annotated[
    bool, typer.Option("--trust-tasks", help="Run other than bundled tasks even where nothing isolates their code.")
]
Impl = Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program; default: the one in the task's file.")]


def open_store(out: Path) -> Store:
    """The store of earlier runs, which must be there: looking at it does not make one."""
    from opsmith.store import FILE, Store  # noqa: PLC0415  (SQLAlchemy is slow to import)

    if not (out if out.is_file() else out / FILE).is_file():
        raise UsageError(f"{out}: no runs here; expected a store made by `opsmith run`; try: --out DIR")
    return Store.open(out)
