"""How are two runs shown side by side? Tables and lines for a terminal, from `opsmith.report.paired`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.table import Table

from opsmith.learn.intervals import Estimate
from opsmith.records import printable
from opsmith.report.pages import sentence
from opsmith.report.paired import Comparison
from opsmith.report.tables import cost, duration, table
from opsmith.report.views import RunView, TaskRow

_FIGURES: dict[str, Callable[[RunView], str]] = {
    "model": lambda run: run.model + ("" if run.is_language_model else " (not a language model)"),
    "solved": lambda run: f"{run.overall.solved}/{run.overall.tasks}",
    "pass@1": lambda run: str(run.overall.pass_at_1 or "-"),
    "rounds": lambda run: str(len(run.rounds)),
    "samples": lambda run: f"{run.judged:,}",
    "input tokens": lambda run: f"{run.usage.input_tokens:,}",
    "output tokens": lambda run: f"{run.usage.output_tokens:,}",
    "cost": lambda run: cost(run.usage),
    "time": lambda run: duration(run.seconds),
    "ended": lambda run: run.end + ("" if run.finished else " (not finished)"),
}


def runs_side_by_side(found: Comparison) -> Table:
    made = table("", found.one.id, found.other.id, right=(found.one.id, found.other.id))
    for name, shown in _FIGURES.items():
        made.add_row(name, shown(found.one), shown(found.other))
    return made


def differing_tasks(found: Comparison) -> Table:
    """The tasks that one run solved and the other did not."""
    made = table("task", found.one.id, found.other.id)
    for pair in found.pairs:
        if pair.differs:
            made.add_row(printable(pair.task), _task(pair.one), _task(pair.other))
    return made


def comparison_lines(found: Comparison) -> Iterator[str]:
    """What the numbers say, and what stands in the way of comparing them."""
    counts = f"both {found.both}, only the first {found.only_one}, only the second {found.only_other}"
    yield f"solved  {counts}, of {len(found.pairs)} tasks; exact McNemar test: p = {found.p_value:.3g}"
    yield f"pass@1  first less second, in the first round: {_signed(found.first_round)}"
    yield f"pass@1  first less second, in the round of each solution: {_signed(found.solving_round)}"
    for name, one, other in found.settings:
        yield f"differs {name}: {one} | {other}"
    if found.unpaired:
        names = printable(sentence(found.unpaired))
        yield f"left out {len(found.unpaired)} tasks that are not in both runs alike: {names}"
    for run in (found.one, found.other):
        if not run.is_language_model:
            yield f"note    {run.id}: {run.warning}"


def _task(row: TaskRow) -> str:
    if row.state == "solved":
        return f"round {row.round}, rate {row.rate:.3f}"
    return f"{row.state}, {row.right} right of {row.judged}" if row.judged else row.state


def _signed(found: Estimate | None) -> str:
    if found is None:
        return "no samples in both"
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}] over {found.tasks} tasks"
