"""What would an experiment cost? The table of `opsmith experiment --dry-run`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from opsmith.evaluation.forecast import Forecast
from opsmith.records import Usage
from opsmith.report.tables import table


def forecast_table(name: str, runs: Sequence[Forecast]) -> Table:
    """A line per run, and their sum."""
    parts = ("requests", "input", "output", "USD")
    first, most = [f"first round: {part}" for part in parts], [f"at most: {part}" for part in parts]
    made = table("arm", "model", "seed", *first, "rounds", *most, right=("seed", *first, "rounds", *most), title=name)
    for run in runs:
        rounds = "-" if run.rounds is None else f"{run.rounds:,}"
        made.add_row(run.arm, run.model, str(run.seed), *_cells(run.first), rounds, *_cells(run.most))
    made.add_section()
    first_sum, most_sum = (Usage.total([Usage(cost_usd=0.0), *group]) for group in _groups(runs))
    made.add_row("all", "", "", *_cells(first_sum), "", *_cells(most_sum))
    return made


def _groups(runs: Sequence[Forecast]) -> tuple[list[Usage], list[Usage]]:
    return [run.first for run in runs], [run.most for run in runs]


def _cells(usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.2f}"
    return f"{usage.requests:,}", f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", cost
