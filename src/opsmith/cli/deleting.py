"""`opsmith runs --delete`: a run is taken out of a store, when whoever says so knows what goes with it."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store import Store


def delete_run(store: Store, name: str, is_sure: bool) -> str:
    """The id of the run that `name` begins, which is deleted; asks on the terminal unless `is_sure`."""
    from opsmith.records import printable
    from opsmith.report.run_deletion import describe_run_contents, refuse_needed_run

    if not name:
        raise UsageError("--delete: given no name; expected a run's id, or the beginning of it")
    run = store.find_run(name)
    refuse_needed_run(store, run)
    if not is_sure:
        contents = printable(describe_run_contents(store, run))
        _ask_first(f"Delete from {store.path}:\n{contents}\nThis cannot be undone. Delete it?")
    store.delete_run(run)
    return run


def _ask_first(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("--delete: it asks before it deletes, and stdin is no terminal; try: --yes")
    if not typer.confirm(question, err=True):
        print("opsmith: nothing was deleted", file=sys.stderr)
        raise typer.Exit(1)
