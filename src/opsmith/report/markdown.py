"""A run in Markdown. For an issue, a log or a README: tables with intervals, and each kept program.

Texts from outside are escaped, so that none of them is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opsmith.records import printable
from opsmith.report.by_target import align_problems, describe_task, have_several_targets, name_columns
from opsmith.report.failures import FailureReader, FailureView
from opsmith.report.languages import LanguageTable, describe_unjudged, read_languages
from opsmith.report.optimised import GainLine
from opsmith.report.pages import format_interval, format_moment, format_number, format_share
from opsmith.report.plans import PlannedView
from opsmith.report.speed_rows import SpeedRow, list_reasons
from opsmith.report.tables import format_cost, format_duration
from opsmith.report.verdicts import name_fault
from opsmith.report.views import GroupRow, RoundRow, RunView, TaskRow, run_view
from opsmith.results.bests import list_best
from opsmith.results.by_model import ModelFigures
from opsmith.store import Store
from opsmith.store.notes import Remarks
from opsmith.store.queries import KeptExperience

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def write_markdown(store: Store, runs: Sequence[str]) -> str:
    """The runs (whole ids) one after another; several begin with a table of all."""
    views = [run_view(store, run) for run in runs]
    lines = list(_write_all(views)) if len(views) > 1 else []
    if have_several_targets(views):
        lines += _by_target(store, views)
    if (languages := read_languages(store, views)) is not None:
        lines += _write_languages(languages)
    for view in views:
        lines += _write_run(view, list_best(store, view.id), FailureReader(store, view.id).view_failures())
    return "\n".join(lines).rstrip() + "\n"


def escape_markup(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", printable(" ".join(text.split())))


def markdown_table(names: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """A table whose cells are Markdown already; all columns but the first `texts` are numbers, to the right."""
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * texts}{'--:|' * (len(names) - texts)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def fence_text(text: str) -> Iterator[str]:
    """A block of code; its fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, printable(text.strip("\n"), keep="\n\t"), fence, "")


def _write_all(views: Sequence[RunView]) -> Iterator[str]:
    yield from ("# All runs", "")
    names = ("run", "model", "solved", "pass@1", "rounds", "samples", "input tokens", "cost", "time")
    yield from markdown_table(
        names, [(f"`{view.label}`", _name_model(view), *_figure_cells(view)) for view in views], 2
    )


def _by_target(store: Store, views: Sequence[RunView]) -> Iterator[str]:
    yield from ("## Problems by target", "")
    rows = [(escape_markup(row.task), *map(describe_task, row.cells)) for row in align_problems(store, views)]
    yield from markdown_table(("problem", *map(escape_markup, name_columns(views))), rows)


def _write_languages(table: LanguageTable) -> Iterator[str]:
    yield from ("## Languages", "")
    rows = [
        (
            escape_markup(column.target),
            str(len(column.runs)),
            f"{column.solved}/{column.problems}",
            *map(format_number, (column.right, column.verdicts)),
            describe_unjudged(column),
            format_cost(column.usage),
        )
        for column in table.columns
    ]
    yield from markdown_table(("language", "runs", "solved", "right", "verdicts", "unjudged", "cost"), rows)
    cells = [[(cell and f"{cell.best}; {cell.samples}") or "–" for cell in row.cells] for row in table.rows]
    names = [escape_markup(row.name) for row in table.rows]
    problems = ((name, *map(escape_markup, texts)) for name, texts in zip(names, cells, strict=True))
    yield from markdown_table(("problem", *(escape_markup(column.target) for column in table.columns)), problems)


def _figure_cells(view: RunView) -> tuple[str, ...]:
    best = view.overall
    counts = (format_number(len(view.rounds)), format_number(view.judged), format_number(view.usage.input_tokens))
    return (
        f"{best.solved}/{best.tasks}",
        _pass_at_1(best),
        *counts,
        format_cost(view.usage),
        format_duration(view.seconds),
    )


_BY_GROUP = (
    "pass@1: in the round that solved a task, at the best of its temperatures (n samples). "
    "Brackets: 95 %, over those samples."
)
_TASKS = "rate: as pass@1 counts it; right and judged: over all rounds and temperatures."


def _write_run(view: RunView, solutions: Iterable[KeptExperience], failures: FailureView) -> Iterator[str]:
    yield from (f"# Run `{view.id}`" + (f": {escape_markup(view.given_name)}" if view.given_name else ""), "")
    begun = format_moment(view.started)
    yield f"Model {_name_model(view)}, target {escape_markup(view.target)}, seed {view.seed}, begun {begun}."
    yield from ((f"**Not a language model:** {escape_markup(view.warning)}.",) if view.warning else ())
    yield from ("", "", f"Ended: {escape_markup(view.end)}" + ("." if view.finished else " (not finished)."), "")
    yield from _write_remarks(view.remarks)
    names = ("solved", "pass@1", "rounds", "samples", "input tokens", "cost", "time")
    yield from markdown_table(names, [_figure_cells(view)])
    yield from ("## By group", "", _BY_GROUP, "")
    yield from markdown_table(
        ("group", "solved", "pass@1", "pass@n", "n"), map(_group_cells, (*view.groups, view.overall))
    )
    yield from _write_failures(failures)
    yield from _write_speeds(view)
    yield from _write_agents(view)
    yield from _write_optimisation(view)
    yield from ("## Rounds", "")
    yield from markdown_table(_ROUND, map(_round_cells, view.rounds))
    yield from ("## pass@k", "")
    points = [(point.series, str(point.k), format_interval(point.estimate)) for point in view.pass_at_k]
    yield from markdown_table(("series", "k", "pass@k"), points)
    yield from ("## Tasks", "", _TASKS, "")
    yield from markdown_table(("task", "state", "round", "rate", "right", "judged"), map(_task_cells, view.tasks))
    yield from ("## Kept programs", "")
    for solution in solutions:
        yield from (f"### {escape_markup(solution.experience.task.id)}", "", *fence_text(solution.experience.source))


def _write_failures(failures: FailureView) -> Iterator[str]:
    """Why things fail: causes, where samples ended, nearest misses; a sentence where nothing failed."""
    yield from ("## Why things fail", "", failures.headline, "")
    if not failures.refused + failures.unjudged:
        return
    causes = [(cause.title, cause.group, cause.group.programs) for cause in failures.causes]
    rows = [
        (escape_markup(title), *map(format_number, (group.samples, programs, len(group.tasks), len(group.rounds))))
        for title, group, programs in causes
    ]
    yield from markdown_table(("cause", "samples", "programs", "tasks", "rounds"), rows)
    if failures.causes_left:
        yield from (f"{failures.causes_left:,} rarer causes: {failures.samples_left:,} samples.", "")
    reasons = [
        (escape_markup(f"{name_fault(group.charged_to)}: {group.reason}"), format_number(group.samples))
        for group in failures.unjudged_groups
    ]
    yield from markdown_table(("without a verdict; at fault", "samples"), reasons) if reasons else ()
    for what, ends in (("round", failures.ends.rounds), ("task", failures.ends.tasks)):
        counts = [(escape_markup(row.name), *map(format_number, row.ends)) for row in ends]
        yield from markdown_table((what, *failures.ends.ends), counts)
    misses = [
        (
            *map(escape_markup, (view.miss.task, f"{view.label}: {view.miss.reason}", view.nearness)),
            view.miss.sample[:12],
        )
        for view in failures.misses
    ]
    if misses:
        yield from markdown_table(("unsolved task", "nearest miss", "how near", "sample"), misses, texts=4)
    for task, words in failures.lacks:
        yield from (escape_markup(f"{task}: {words}."), "")


def _write_remarks(remarks: Remarks) -> Iterator[str]:
    """What people say of the run, as a quotation."""
    if remarks.all_tags:
        yield from (f"Tags: {escape_markup(', '.join(remarks.all_tags))}.", "")
    if remarks.text:
        yield from (f"> {escape_markup(line)}" for line in remarks.text.splitlines())
        yield ""


_SPEED = ("task, shape set", "time of one call", "GB/s", "GFLOP/s", "of the limit", "ratio", "claim", "grade")


def _write_speeds(view: RunView) -> Iterator[str]:
    if not view.speeds:
        return
    yield from ("## Speed", "", f"{view.speed_summary}.", "")
    yield from markdown_table(_SPEED, map(_speed_cells, view.speeds))
    for reason in list_reasons(view.speeds):
        yield from (f"Not said: {escape_markup(reason)}", "")
    for build in dict.fromkeys(row.build for row in view.speeds):
        yield from (escape_markup(build), "")


def _write_agents(view: RunView) -> Iterator[str]:
    """Its models, plans and tools, where it has several or any."""
    if view.models:
        yield from ("## Models", "")
        yield from markdown_table(_MODEL, map(_model_cells, view.models))
    if view.plans:
        yield from ("## Plans", "", f"{view.plan_summary}.", "")
        nodes = (node for tree in view.plans for node in tree.list_all())
        yield from markdown_table(("task or node", "state", "right", "judged", "splits"), map(_plan_cells, nodes))
    yield from ("## Tools", "", *(f"- {line}" for line in view.tool_lines), "") if view.tool_lines else ()


_MODEL = (
    "model", "requests", "input tokens", "output tokens", "reasoning tokens", "cost", "right", "judged", "rate",
    "solved", "first",
)  # fmt: skip


def _model_cells(row: ModelFigures) -> tuple[str, ...]:
    usage = row.usage
    tokens = (usage.requests, usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)
    counts = (format_number(row.right), format_number(row.verdicts), format_interval(row.rate))
    bill = (*map(format_number, tokens), format_cost(usage))
    return escape_markup(row.model), *bill, *counts, str(row.solved), str(row.first)


def _plan_cells(node: PlannedView) -> tuple[str, ...]:
    counts = (node.right, node.verdicts, len(node.plans))
    return escape_markup(node.task), node.state, *map(format_number, counts)


def _write_optimisation(view: RunView) -> Iterator[str]:
    optimised = view.optimised
    if optimised is None:
        return
    yield from ("## Optimisation", "", *(f"- {escape_markup(line)}" for line in optimised.headlines), "")
    partners = (escape_markup(f"over {name}") for name in optimised.partners)
    names = ("task", "over the start program", "claim", *partners, "rounds", "attempts", "right", "spread")
    yield from markdown_table(names, map(_gain_cells, optimised.gains))
    rows = ((f"{row.round}, {row.phase}", *map(str, row.counts)) for row in optimised.states)
    yield from markdown_table(("round", *optimised.state_names), rows)


def _gain_cells(row: GainLine) -> tuple[str, ...]:
    counts = map(str, (row.rounds, row.attempts, row.right))
    return escape_markup(row.task), row.gain, row.claim, *row.to_partners, *counts, row.spread


def _speed_cells(row: SpeedRow) -> tuple[str, ...]:
    figures = (row.time, row.gbytes, row.gflops, row.share, row.ratio)
    return escape_markup(f"{row.task}, {row.shape_set} ({row.sizes})"), *figures, row.claim, row.grade


def _name_model(view: RunView) -> str:
    return escape_markup(view.model) + ("" if view.is_language_model else " (not a language model)")


def _pass_at_1(row: GroupRow) -> str:
    value = format_interval(row.pass_at_1) if row.pass_at_1 is not None else format_share(row.value_at_1)
    return f"{value}{row.unjudged_note}"


def _group_cells(row: GroupRow) -> tuple[str, ...]:
    solved = f"{row.solved}/{row.tasks}"
    return escape_markup(row.group), solved, _pass_at_1(row), format_interval(row.pass_at_n), str(row.n or "–")


_ROUND = (
    "round", "level", "examples", "tasks", "samples", "right", "new", "solved", "input tokens", "output tokens", "cost",
)  # fmt: skip


def _round_cells(row: RoundRow) -> tuple[str, ...]:
    counts = (row.attempted, row.spent.judged, row.spent.right, len(row.solved), row.cumulative)
    tokens = (row.spent.usage.input_tokens, row.spent.usage.output_tokens)
    head = (str(row.number), row.level, str(len(row.demonstrations)))
    return (*head, *map(format_number, counts), *map(format_number, tokens), format_cost(row.spent.usage))


def _task_cells(row: TaskRow) -> tuple[str, ...]:
    solved = ("–", "–") if row.round is None else (str(row.round), format_share(row.rate))
    return escape_markup(row.id), row.state, *solved, format_number(row.right), format_number(row.judged)
