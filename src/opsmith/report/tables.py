"""Tables for a terminal, from what the store, the models and the benchmark list. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from opsmith.models.table import ModelInfo
from opsmith.records import Task, Usage
from opsmith.store.queries import RunSummary

_IS_SET = {True: "set", False: "not set"}


def output(stderr: bool = False) -> Console:
    """A console that leaves text as it is; into a file or pipe lines are long rather than folded."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Console(file=console.file, width=200, highlight=False, markup=False)


def table(*columns: str, right: Sequence[str] = (), title: str | None = None) -> Table:
    """An empty table in the one style of all; columns named in `right` hold numbers."""
    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def tasks_table(suites: Mapping[str, Iterable[Task]]) -> Table:
    made = table("task", "group", "suite", "target", "own impl")
    for suite, tasks in suites.items():
        for task in tasks:
            made.add_row(task.id, task.group, suite, task.target, "yes" if task.impl else "no")
    return made


def models_table(models: Iterable[ModelInfo]) -> Table:
    made = table("model", "key", "what")
    for model in models:
        state = "not needed" if model.variable is None else f"{model.variable}: {_IS_SET[bool(model.key_present)]}"
        made.add_row(model.pattern, state, model.what)
    return made


def bench_table(rows: Mapping[str, Mapping[str, Any]], totals: Mapping[str, Any]) -> Table:
    """Times per task, their ratios to the reference's or the parser's, and the medians over the tasks."""
    numbers = ("check", "/parse", "base", "torch", "ratio", "rest", "large", "torch ", "ratio ", "batch/s", "MiB")
    made = table("task [ms]", *numbers, right=numbers)
    for name, row in rows.items():
        batch = row["batch"]
        speed = f"{batch['samples'] / batch['base']:,.0f}" if batch else ""
        check = (f"{1e3 * row['check']:.3f}", f"{row['check'] / row['parse']:.1f}")
        base, large = _timed(row["base"], 3), _timed(row["large"], 2) if row["large"] else ("", "", "")
        candidate = f"{1e3 * row['candidate']:.1f}"
        made.add_row(name, *check, *base, candidate, *large, speed, f"{row['memory_mib']:.0f}")
    made.add_section()
    for which in ("median", "worst"):
        made.add_row(which, *_totals(totals, which))
    made.caption = "\n".join([_LEGEND, *_refusals(totals)])
    made.caption_justify = "left"
    return made


_LEGEND = """\
check: the static one, over Python's parse; base, large: a draw at that shape set, over the PyTorch reference;
rest: all draws but large; batch/s: random candidates at base, judged together"""


def _timed(row: Mapping[str, float], digits: int) -> tuple[str, str, str]:
    trial, reference = 1e3 * row["trial"], 1e3 * row["reference"]
    return f"{trial:.{digits}f}", f"{reference:.{digits}f}", f"{trial / reference:.1f}"


def overhead_table(found: Mapping[str, Any]) -> Table:
    """What `opsmith bench run` measured."""
    made = table(
        "requests", "at once", "wall [s]", "ideal [s]", "ratio", "client ms/request", "MiB", "growth", "judged"
    )
    cells = (
        f"{found['requests']:,}", f"{found['concurrency']}", f"{found['wall_s']:.1f}", f"{found['ideal_s']:.1f}",
        f"{found['wall_over_ideal']:.2f}", f"{found['client_cpu_ms_per_request']:.1f}", f"{found['memory_mib']:.0f}",
        f"{found['memory_growth_mib']:.0f}", f"{found['judged']:,}",
    )  # fmt: skip
    made.add_row(*cells)
    return made


def _totals(totals: Mapping[str, Any], which: str) -> list[str]:
    def of(key: str, form: str) -> str:
        return format(totals[key][which], form) if totals[key] else ""

    memory = f"{totals['memory_mib']:.0f}" if which == "worst" else ""
    return [
        "", of("check_over_parse", ".1f"), of("trial_ms", ".3f"), "", of("base_over_reference", ".1f"),
        of("candidate_ms", ".1f"), "", "", of("large_over_reference", ".1f"), of("candidates_per_second", ",.0f"),
        memory,
    ]  # fmt: skip


def _refusals(totals: Mapping[str, Any]) -> list[str]:
    """One line on programs that are refused before they run, and two on batches."""
    parts = []
    if totals["refusal_ms"]:
        ratio = totals["refusal_over_parse"]
        parts.append(
            f"{totals['refusals']} refusals before RUN: median {totals['refusal_ms']['median']:.3f} ms, worst "
            f"{totals['refusal_ms']['worst']:.3f} ms; over Python's parse: median {ratio['median']:.1f}, "
            f"worst task {ratio['worst']:.1f}"
        )
    if totals["candidates_per_second"]:
        parts.append(f"candidates at base, in batches: {totals['candidates_per_second_of_all']:,.0f}/s over all tasks")
        speeds = [
            f"{speed:,.0f}/s with {n} worker{'s' * (n > 1)}" for n, speed in totals["verdicts_per_second"].items()
        ]
        parts.append(f"full verdicts on them: {', '.join(speeds)}")
    return parts


def runs_table(runs: Iterable[RunSummary]) -> Table:
    numbers = ("solved", "rounds", "samples", "tokens", "cost", "time")
    made = table("run", "started", "model", "state", *numbers, right=numbers)
    for run in runs:
        made.add_row(
            run.info.id,
            datetime.fromtimestamp(run.started).isoformat(" ", "minutes"),
            run.info.model,
            run.end or "runs, or was killed",
            f"{run.solved}/{run.tasks}",
            str(run.rounds),
            str(run.samples),
            f"{run.usage.input_tokens + run.usage.output_tokens:,}",
            cost(run.usage),
            duration(run.seconds),
        )
    return made


def figures_tables(figures: Mapping[str, Any], title: str) -> Iterator[Table]:
    """A target's cost figures: lists of records as tables of their own, then all others, one per row."""
    parts = {name: value for name, value in figures.items() if isinstance(value, list) and value}
    for name, rows in parts.items():
        yield records_table(rows, name)
    made = table("figure", "value", right=("value",), title=title)
    for name, value in figures.items():
        if name not in parts:
            made.add_row(name, _cell(value))
    yield made


def records_table(rows: Sequence[Any], title: str) -> Table:
    records = [row if isinstance(row, Mapping) else {title: row} for row in rows]
    columns = list(dict.fromkeys(key for record in records for key in record))
    numbers = [key for key in columns if all(isinstance(record.get(key), (int, float, NoneType)) for record in records)]
    made = table(*columns, right=numbers, title=title)
    for record in records:
        made.add_row(*(_cell(record.get(key)) for key in columns))
    return made


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}" if usage.cost_usd else "$0"


def duration(seconds: float) -> str:
    """
    >>> duration(7.24), duration(754), duration(7540)
    ('7.2 s', '12:34', '2:05:40')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
