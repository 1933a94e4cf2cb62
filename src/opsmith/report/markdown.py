"""How does a run look in Markdown? For an issue, a log or a README: tables with intervals, and each kept program.

Texts from outside are escaped, so that none of them is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opsmith.records import printable
from opsmith.report.pages import interval, moment, number, share
from opsmith.report.tables import cost, duration
from opsmith.report.views import GroupRow, RoundRow, RunView, TaskRow, run_view
from opsmith.store import Store
from opsmith.store.queries import Kept

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def markdown(store: Store, runs: Sequence[str]) -> str:
    """The runs (whole ids) one after another; several begin with a table of all."""
    views = [run_view(store, run) for run in runs]
    lines = list(_all(views)) if len(views) > 1 else []
    for view in views:
        lines += _run(view, store.experiences(view.id))
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", printable(" ".join(text.split())))


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table whose cells are Markdown already; all columns but the first are numbers, to the right."""
    yield f"| {' | '.join(names)} |"
    yield f"|---|{'--:|' * (len(names) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def fenced(text: str) -> Iterator[str]:
    """A block of code; its fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, printable(text.strip("\n"), keep="\n\t"), fence, "")


def _all(views: Sequence[RunView]) -> Iterator[str]:
    yield from ("# All runs", "")
    names = ("run", "model", "solved", "pass@1", "rounds", "samples", "input tokens", "cost", "time")
    yield from table(names, [(f"`{view.id}`", _model(view), *_figures(view)) for view in views])


def _figures(view: RunView) -> tuple[str, ...]:
    best = view.overall
    counts = (number(len(view.rounds)), number(view.judged), number(view.usage.input_tokens))
    return (f"{best.solved}/{best.tasks}", _pass_at_1(best), *counts, cost(view.usage), duration(view.seconds))


_BY_GROUP = (
    "pass@1: in the round that solved a task, at the best of its temperatures (n samples). "
    "Brackets: 95 % bootstrap over those samples."
)
_TASKS = "rate: as pass@1 counts it; right and judged: over all rounds and temperatures."


def _run(view: RunView, kept: Iterable[Kept]) -> Iterator[str]:
    yield from (f"# Run `{view.id}`", "")
    yield f"Model {_model(view)}, target {escaped(view.target)}, seed {view.seed}, begun {moment(view.started)}."
    yield from ((f"**Not a language model:** {escaped(view.warning)}.",) if view.warning else ())
    yield from ("", "", f"Ended: {escaped(view.end)}" + ("." if view.finished else " (not finished)."), "")
    names = ("solved", "pass@1", "rounds", "samples", "input tokens", "cost", "time")
    yield from table(names, [_figures(view)])
    yield from ("## By group", "", _BY_GROUP, "")
    yield from table(("group", "solved", "pass@1", "pass@n", "n"), map(_group, (*view.groups, view.overall)))
    yield from ("## Rounds", "")
    yield from table(_ROUND, map(_round, view.rounds))
    yield from ("## pass@k", "")
    points = [(found.series, str(found.k), interval(found.estimate)) for found in view.pass_at_k]
    yield from table(("series", "k", "pass@k"), points)
    yield from ("## Tasks", "", _TASKS, "")
    yield from table(("task", "state", "round", "rate", "right", "judged"), map(_task, view.tasks))
    yield from ("## Kept programs", "")
    for item in kept:
        yield from (f"### {escaped(item.experience.task.id)}", "", *fenced(item.experience.source))


def _model(view: RunView) -> str:
    return escaped(view.model) + ("" if view.is_language_model else " (not a language model)")


def _pass_at_1(row: GroupRow) -> str:
    return interval(row.pass_at_1) if row.pass_at_1 is not None else share(row.value_at_1)


def _group(row: GroupRow) -> tuple[str, ...]:
    solved = f"{row.solved}/{row.tasks}"
    return escaped(row.group), solved, _pass_at_1(row), interval(row.pass_at_n), str(row.n or "–")


_ROUND = (
    "round", "level", "examples", "tasks", "samples", "right", "new", "solved", "input tokens", "output tokens", "cost",
)  # fmt: skip


def _round(row: RoundRow) -> tuple[str, ...]:
    counts = (row.attempted, row.spent.judged, row.spent.right, len(row.solved), row.cumulative)
    tokens = (row.spent.usage.input_tokens, row.spent.usage.output_tokens)
    shown = (str(row.number), row.level, str(len(row.demonstrations)))
    return (*shown, *map(number, counts), *map(number, tokens), cost(row.spent.usage))


def _task(row: TaskRow) -> tuple[str, ...]:
    solved = ("–", "–") if row.round is None else (str(row.round), share(row.rate))
    return escaped(row.id), row.state, *solved, number(row.right), number(row.judged)
