"""Runs side by side: tables and lines for a terminal, from `opsmith.report.paired`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from opsmith.records import printable
from opsmith.report.by_target import ProblemRow, describe_task, have_several_targets, name_columns
from opsmith.report.paired import Comparison
from opsmith.report.tables import format_cost, format_duration, list_names, make_table, shorten_end
from opsmith.report.views import RunView
from opsmith.results.intervals import Estimate

RUN_FIGURES: dict[str, Callable[[RunView], str]] = {
    "model": lambda run: run.model + ("" if run.is_language_model else " (not a language model)"),
    "solved": lambda run: f"{run.overall.solved}/{run.overall.tasks}",
    "pass@1": lambda run: str(run.overall.pass_at_1 or "-"),
    "rounds": lambda run: str(len(run.rounds)),
    "samples": lambda run: f"{run.judged:,}",
    "input tokens": lambda run: f"{run.usage.input_tokens:,}",
    "output tokens": lambda run: f"{run.usage.output_tokens:,}",
    "cost": lambda run: format_cost(run.usage),
    "time": lambda run: format_duration(run.seconds),
    "ended": lambda run: shorten_end(run.end) + ("" if run.finished else " (not finished)"),
}


def runs_side_by_side(views: Sequence[RunView]) -> Table:
    """A column per run; their targets are told where they differ."""
    runs = [view.label for view in views]
    rows = make_table("", *runs, right=runs)
    if runs != [view.id for view in views]:
        rows.add_row("run", *(view.id for view in views))
    if have_several_targets(views):
        rows.add_row("target", *(printable(view.target) for view in views))
    for name, format_figure in RUN_FIGURES.items():
        rows.add_row(name, *map(format_figure, views))
    return rows


def problems_by_target(views: Sequence[RunView], problems: Sequence[ProblemRow]) -> Table:
    """A row per problem and a column per run."""
    rows = make_table("problem", *map(printable, name_columns(views)))
    for problem in problems:
        rows.add_row(printable(problem.task), *map(describe_task, problem.cells))
    return rows


def differing_tasks(comparison: Comparison) -> Table:
    """The tasks that one run solved and the other did not."""
    rows = make_table("task", comparison.first.label, comparison.second.label)
    for pair in comparison.pairs:
        if pair.differs:
            rows.add_row(printable(pair.task), describe_task(pair.first), describe_task(pair.second))
    return rows


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """What the numbers say, and what stands in the way of comparing them."""
    counts = f"both {comparison.both}, only the first {comparison.only_one}, only the second {comparison.only_other}"
    yield f"solved  {counts}, of {len(comparison.pairs)} tasks; exact McNemar test: p = {comparison.p_value:.3g}"
    yield f"pass@1  first minus second, in the first round: {format_signed(comparison.first_round)}"
    yield f"pass@1  first minus second, in the round of each solution: {format_signed(comparison.solving_round)}"
    for name, first, second in comparison.settings:
        yield printable(f"differs {name}: {first} | {second}")
    if comparison.unpaired:
        names = printable(list_names(comparison.unpaired))
        yield f"left out {len(comparison.unpaired)} as not in both runs alike: {names}"
    for run in (comparison.first, comparison.second):
        if not run.is_language_model:
            yield printable(f"note    {run.label}: {run.warning}")


def format_signed(estimate: Estimate | None) -> str:
    """A difference with its sign and interval."""
    if estimate is None:
        return "no samples in both"
    return f"{estimate:+.3f} over {estimate.tasks} tasks"
