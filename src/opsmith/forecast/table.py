"""What an experiment would cost: the table of `opsmith experiment --dry-run`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from opsmith.forecast.forecast import Forecast
from opsmith.models.roles import shorten_model
from opsmith.records import Usage
from opsmith.report.tables import make_table


def tabulate_forecasts(name: str, runs: Sequence[Forecast]) -> Table:
    """A line per run, and their sum: its first round, then all of it at most."""
    numbers = ("requests", "input", "output", "USD")
    bounds = [f"{number} " for number in numbers]  # rich tells columns apart by their names
    rows = make_table(
        "arm",
        "model",
        "seed",
        *numbers,
        "rounds <=",
        *bounds,
        right=("seed", *numbers, "rounds <=", *bounds),
        least=("output", "input", "requests", "rounds <=", "output ", "input "),
    )
    rows.title = f"{name}: the first round, and the whole run at most"
    for run in runs:
        rounds = "-" if run.rounds is None else f"{run.rounds:,}"
        rows.add_row(
            run.arm,
            shorten_model(run.model),
            str(run.seed),
            *_format_usage(run.first),
            rounds,
            *_format_usage(run.most),
        )
    rows.add_section()
    sums = [Usage.total(group) for group in ([run.first for run in runs], [run.most for run in runs])]
    rows.add_row("all", "", "", *_format_usage(sums[0]), "", *_format_usage(sums[1]))
    return rows


def _format_usage(usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.2f}"
    return f"{usage.requests:,}", _format_tokens(usage.input_tokens), _format_tokens(usage.output_tokens), cost


def _format_tokens(count: int) -> str:
    """
    >>> _format_tokens(24_191_232), _format_tokens(830)
    ('24.19M', '830')
    """
    return f"{count / 1e6:,.2f}M" if count >= 10_000 else f"{count:,}"
