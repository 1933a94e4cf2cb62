"""The models of a run on a terminal: what each was paid for, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from opsmith.report.speed_rows import NOTHING
from opsmith.report.tables import format_cost, make_table
from opsmith.results.by_model import ModelFigures, read_by_model
from opsmith.store import Store


def print_models(console: Console, store: Store, run: str) -> None:
    """A row for each model of a run of several; nothing for a run of one."""
    models = read_by_model(store, run)
    if len(models) > 1:
        console.print(tabulate_models(models))


def tabulate_models(models: Iterable[ModelFigures]) -> Table:
    numbers = ("requests", "input", "output", "reasoning", "cost", "samples", "right", "rate", "solved", "first")
    grid = make_table(
        "model",
        "roles",
        *numbers,
        right=numbers,
        title="models",
        least=("reasoning", "first", "input", "roles", "output", "requests"),
    )
    for row in models:
        usage, samples = row.usage, f"{row.verdicts:,}"
        tokens = (usage.requests, usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
        grid.add_row(
            row.model,
            ", ".join(row.roles) or NOTHING,
            *(f"{count:,}" for count in tokens),
            format_cost(usage),
            samples if row.verdicts == row.samples else f"{samples} of {row.samples:,}",
            f"{row.right:,}",
            NOTHING if row.rate is None else str(row.rate),
            str(row.solved),
            str(row.first),
        )
    return grid
