"""`opsmith runs --delete`: a run is taken out of a store, when whoever says so knows what goes with it."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from opsmith.errors import StoreError, UsageError

if TYPE_CHECKING:
    from opsmith.store import Store


def delete_run(store: Store, name: str, is_sure: bool) -> str:
    """The id of the run that `name` begins, which is deleted; asks on the terminal unless `is_sure`."""
    from opsmith.records import printable

    if not name:
        raise UsageError("--delete: given no name; expected a run's id, or the beginning of it")
    run = store.find_run(name)
    _refuse_used(store, run)
    if not is_sure:
        _ask_first(
            f"Delete from {store.path}:\n{printable(_describe_contents(store, run))}\nThis cannot be undone. Delete it?"
        )
    store.delete_run(run)
    return run


def _refuse_used(store: Store, run: str) -> None:
    from opsmith.store.deletion import referring_runs

    if store.is_held(run):
        raise StoreError(
            f"store {store.path}: run {run} is being worked on; try: end that process first, or wait for it"
        )
    if users := referring_runs(store, run):
        raise UsageError(
            f"--delete {run}: given a run that others began with or were measured by: {', '.join(users)}; "
            f"expected one that no other needs; try: delete those first"
        )


def _describe_contents(store: Store, run: str) -> str:
    """What goes with a run, on one line."""
    from opsmith.report.tables import format_cost
    from opsmith.store.spending import known_usd

    summary = store.summarise_run(run)
    usage = summary.usage
    least = (
        ""
        if usage.cost_usd is not None
        else f", at least {format_cost(replace(usage, cost_usd=known_usd(store, run)))}"
    )
    replies = f"{usage.requests:,} replies of {usage.input_tokens + usage.output_tokens:,} tokens"
    solved = f"{summary.solved} of {summary.tasks} tasks solved"
    about = f"run {run} ({summary.end or 'no end told'}): {summary.samples:,} samples"
    return f"{about}, {replies}, cost {format_cost(usage)}{least}, {solved}"


def _ask_first(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("--delete: it asks before it deletes, and stdin is no terminal; try: --yes")
    if not typer.confirm(question, err=True):
        print("opsmith: nothing was deleted", file=sys.stderr)
        raise typer.Exit(1)
