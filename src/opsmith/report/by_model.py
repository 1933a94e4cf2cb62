"""The models of a run: what each was paid for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from opsmith.report.record import COUNT, SHARE, TEXT, USD, DataTable, Said
from opsmith.report.tables import NOTHING
from opsmith.results.by_model import ModelFigures, read_by_model
from opsmith.store import Store

_TOKENS = ("input", "output", "reasoning")


def print_models(console: Console, store: Store, run: str) -> None:
    """A row for each model of a run of several; nothing for a run of one."""
    models = read_by_model(store, run)
    if len(models) > 1:
        console.print(tabulate_models(models))


def tabulate_models(models: Iterable[ModelFigures]) -> DataTable:
    """A row for each model. Tokens are of all that was asked of it."""
    rows = [
        (
            row.model,
            ", ".join(row.roles) or NOTHING,
            row.usage.requests,
            *(getattr(row.usage, f"{name}_tokens") for name in _TOKENS),
            row.usage,
            Said(f"{row.verdicts:,}" + (f" of {row.samples:,}" if row.verdicts < row.samples else ""), row.verdicts),
            row.right,
            row.rate,
            row.solved,
            row.first,
        )
        for row in models
    ]
    columns = {"model": TEXT, "roles": TEXT, "requests": COUNT, **dict.fromkeys(_TOKENS, "tokens"), "cost": USD}
    columns |= {"samples": COUNT, "right": COUNT, "rate": SHARE, "solved": COUNT, "first": COUNT}
    return DataTable("models", columns, rows, ("reasoning", "first", "input", "roles", "output", "requests"))
