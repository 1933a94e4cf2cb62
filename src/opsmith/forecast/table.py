"""What runs would cost: the tables of `--dry-run`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from opsmith.forecast.forecast import Duration, Forecast
from opsmith.models.roles import shorten_model
from opsmith.records import Usage
from opsmith.report.tables import format_duration, make_table

_COLUMNS = ("rounds", "requests", "input tokens", "output tokens", "USD")


def tabulate_run(forecast: Forecast) -> Table:
    """One run: its first round, what is expected of it, and all of it at most."""
    title = f"{shorten_model(forecast.model)}, seed {forecast.seed}"
    rows = make_table("", *_COLUMNS, right=_COLUMNS, title=title)
    for name, rounds, usage in (
        ("first round", 1.0, forecast.first),
        ("expected", forecast.expected_rounds, forecast.expected),
        ("at most", forecast.rounds, forecast.most),
    ):
        rows.add_row(name, _format_rounds(rounds), *_format_usage(usage))
    return rows


def tabulate_forecasts(name: str, runs: Sequence[Forecast]) -> Table:
    """A line per run, and their sum: what is expected of each, and what it costs at most."""
    bounds = ("rounds <=", "requests <=", "USD <=")
    rows = make_table(
        "arm",
        "model",
        "seed",
        *_COLUMNS,
        *bounds,
        right=("seed", *_COLUMNS, *bounds),
        least=("output tokens", "input tokens", "rounds <=", "requests <=", "rounds", "requests"),
        title=f"{name}: what each run is expected to ask and to cost; <=: at most",
    )
    for run in runs:
        most = _format_usage(run.most)
        rows.add_row(
            run.arm,
            shorten_model(run.model),
            str(run.seed),
            _format_rounds(run.expected_rounds),
            *_format_usage(run.expected),
            *(_format_rounds(run.rounds), most[0], most[-1]),
        )
    rows.add_section()
    expected, most = (
        _format_usage(Usage.total(group)) for group in ([run.expected for run in runs], [run.most for run in runs])
    )
    rows.add_row("all", "", "", "", *expected, "", most[0], most[-1])
    return rows


def describe_duration(forecasts: Sequence[Forecast]) -> str:
    """How long what is expected of runs takes that go one after another, a line for each stored run that tells."""
    known: dict[str, list[Duration]] = {}
    for forecast in forecasts:
        if forecast.duration is not None:
            known.setdefault(forecast.duration.pace.run, []).append(forecast.duration)
    lines = []
    for run, own in known.items():
        pace, alone, paced = own[0].pace, *(sum(each.asking[side] for each in own) for side in (0, 1))
        asked = f"time: about {sum(each.requests for each in own):,} requests at {format_duration(pace.request_s)} each"
        ends = f"{format_duration(alone)} with {own[0].at_once} at once, {format_duration(paced)} as they came there"
        judging = format_duration(sum(each.judging for each in own))
        judged = f"judging {format_duration(pace.program_s)} a program, {own[0].workers} at once: {judging}"
        lines.append(f"{asked} (run {run}): {ends}; {judged}")
    if unknown := sorted({each.model for each in forecasts if each.duration is None}):
        lines.append(f"time: not known of {', '.join(unknown)}; a run with --samples 1 and --max-rounds 1 tells it")
    return "\n".join(lines)


def _format_rounds(rounds: float | None) -> str:
    return "-" if rounds is None else f"{rounds:,.1f}".removesuffix(".0")


def _format_usage(usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:,.2f}"
    return f"{usage.requests:,}", _format_tokens(usage.input_tokens), _format_tokens(usage.output_tokens), cost


def _format_tokens(count: int) -> str:
    """
    >>> _format_tokens(24_191_232), _format_tokens(830)
    ('24.19M', '830')
    """
    return f"{count / 1e6:,.2f}M" if count >= 10_000 else f"{count:,}"
