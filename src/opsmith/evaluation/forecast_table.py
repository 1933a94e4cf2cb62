"""What would an experiment cost? The table of `opsmith experiment --dry-run`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from opsmith.evaluation.forecast import Forecast
from opsmith.evaluation.found import short
from opsmith.records import Usage
from opsmith.report.tables import table


def forecast_table(name: str, runs: Sequence[Forecast]) -> Table:
    """A line per run, and their sum: its first round, then all of it at most."""
    parts = ("requests", "input", "output", "USD")
    most = [f"{part} " for part in parts]  # rich tells columns apart by their names
    made = table("arm", "model", "seed", *parts, "rounds <=", *most, right=("seed", *parts, "rounds <=", *most))
    made.title = f"{name}: the first round, and the whole run at most"
    for run in runs:
        rounds = "-" if run.rounds is None else f"{run.rounds:,}"
        made.add_row(run.arm, short(run.model), str(run.seed), *_cells(run.first), rounds, *_cells(run.most))
    made.add_section()
    sums = [Usage.total(group) for group in ([run.first for run in runs], [run.most for run in runs])]
    made.add_row("all", "", "", *_cells(sums[0]), "", *_cells(sums[1]))
    return made


def _cells(usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.2f}"
    return f"{usage.requests:,}", _tokens(usage.input_tokens), _tokens(usage.output_tokens), cost


def _tokens(count: int) -> str:
    """
    >>> _tokens(24_191_232), _tokens(830)
    ('24.19M', '830')
    """
    return f"{count / 1e6:,.2f}M" if count >= 10_000 else f"{count:,}"
