"""A run in Markdown. For an issue, a log or a README: tables with intervals, and each kept program.

Texts from outside are escaped, so that none of them is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from opsmith.records import printable
from opsmith.report.comparison import align_problems, have_several_targets, tabulate_problems
from opsmith.report.failures import FailureReader, FailureView
from opsmith.report.languages import read_languages, tabulate_by_language, tabulate_languages
from opsmith.report.many_runs import gather_runs, tabulate_course, tabulate_runs
from opsmith.report.pages import format_moment
from opsmith.report.record import COUNT, SECONDS, SHARE, TEXT, USD, DataTable, Said, Value, escape_markup, write_grid
from opsmith.report.run_tables import list_tables, say_pass_at_1
from opsmith.report.speeds import list_builds, list_reasons
from opsmith.report.tables import count_noun, format_duration
from opsmith.report.verdicts import name_fault
from opsmith.report.views import RunView, run_view
from opsmith.results.bests import list_best
from opsmith.store import Store
from opsmith.store.notes import Remarks
from opsmith.store.queries import KeptExperience


def write_markdown(store: Store, runs: Sequence[str]) -> str:
    """The runs (whole ids) one after another; several begin with a table of all."""
    views = [run_view(store, run) for run in runs]
    lines: list[str] = []
    if len(views) > 1:
        many = gather_runs(views)
        lines += ("# All runs", "", *write_grid(tabulate_runs(many)))
        lines += ("## Solved, by round", "", *write_grid(tabulate_course(many, "solved", "round")))
    if have_several_targets(views):
        lines += ("## Problems by target", "", *write_grid(tabulate_problems(views, align_problems(store, views))))
    if (languages := read_languages(store, views)) is not None:
        lines += ("## Languages", "", *write_grid(tabulate_languages(languages)))
        lines += write_grid(tabulate_by_language(languages))
    for view in views:
        lines += _write_run(view, list_best(store, view.id), FailureReader(store, view.id).view_failures())
    return "\n".join(lines).rstrip() + "\n"


def fence_text(text: str) -> Iterator[str]:
    """A block of code; its fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, printable(text.strip("\n"), keep="\n\t"), fence, "")


_FIGURES = {
    "model": TEXT, "solved": COUNT, "pass@1": SHARE, "rounds": COUNT, "samples": COUNT, "input tokens": "tokens",
    "cost": USD, "time": SECONDS,
}  # fmt: skip


def _mark_model(view: RunView) -> str:
    return "" if view.is_language_model else " (not a language model)"


def _list_figures(view: RunView) -> tuple[Value, ...]:
    best = view.overall
    return (
        f"{view.model}{_mark_model(view)}",
        Said(f"{best.solved}/{best.tasks}", best.solved),
        say_pass_at_1(best),
        len(view.rounds),
        view.judged,
        view.usage.input_tokens,
        view.usage,
        Said(format_duration(view.seconds), view.seconds),
    )


def _write_run(view: RunView, solutions: Iterable[KeptExperience], failures: FailureView) -> Iterator[str]:
    yield from (f"# Run `{view.id}`" + (f": {escape_markup(view.given_name)}" if view.given_name else ""), "")
    model, began = f"{escape_markup(view.model)}{_mark_model(view)}", format_moment(view.started)
    yield f"Model {model}, language {escape_markup(view.target)}, seed {view.seed}, began {began}."
    yield from ((f"**Not a language model:** {escape_markup(view.warning)}.",) if view.warning else ())
    yield from (
        (f"**Verdicts in {escape_markup(view.target)}:** {escape_markup(view.caveat)}.",) if view.caveat else ()
    )
    yield from ("", "", f"Ended: {escape_markup(view.end)}" + ("." if view.finished else " (not finished)."), "")
    yield from _write_remarks(view.remarks)
    yield from write_grid(DataTable("", _FIGURES, [_list_figures(view)]))
    tables = list_tables(view)
    yield from ("## By group", "", *write_grid(tables["groups"]))
    yield from _write_failures(failures)
    yield from _write_parts(view, tables)
    if "known" in tables:
        yield from ("## Known programs", "", *write_grid(tables["known"]))
    yield from ("## Rounds", "", *write_grid(tables["rounds"]))
    yield from ("## pass@k", "", *write_grid(tables["pass@k"]))
    yield from ("## Tasks", "", *write_grid(tables["tasks"]))
    yield from ("## Kept programs", "")
    for solution in solutions:
        yield from (f"### {escape_markup(solution.experience.task.id)}", "", *fence_text(solution.experience.source))


def _write_failures(failures: FailureView) -> Iterator[str]:
    """Why things fail: causes, where samples ended, nearest misses; a sentence where nothing failed."""
    yield from ("## Why things fail", "", failures.headline, "")
    if not failures.refused + failures.unjudged:
        return
    groups = [(cause.title, cause.group) for cause in failures.causes]
    rows: list[Sequence[Value]] = [
        (title, group.samples, group.programs, len(group.tasks), len(group.rounds)) for title, group in groups
    ]
    yield from _write_counts("cause", ("samples", "programs", "tasks", "rounds"), rows)
    if failures.causes_left:
        yield from (
            f"{count_noun(failures.causes_left, 'rarer cause')}: {count_noun(failures.samples_left, 'sample')}.",
            "",
        )
    rows = [(f"{name_fault(group.charged_to)}: {group.reason}", group.samples) for group in failures.unjudged_groups]
    yield from _write_counts("without a verdict; at fault", ("samples",), rows) if rows else ()
    for what, ends in (("round", failures.ends.rounds), ("task", failures.ends.tasks)):
        yield from _write_counts(what, failures.ends.ends, [(row.name, *row.ends) for row in ends])
    rows = [
        (view.miss.task, f"{view.label}: {view.miss.reason}", view.nearness, view.miss.sample[:12])
        for view in failures.misses
    ]
    if rows:
        columns = dict.fromkeys(("unsolved task", "nearest miss", "how near", "sample"), TEXT)
        yield from write_grid(DataTable("", columns, rows))
    for task, words in failures.lacks:
        yield from (escape_markup(f"{task}: {words}."), "")


def _write_counts(what: str, names: Sequence[str], rows: Sequence[Sequence[Value]]) -> Iterator[str]:
    yield from write_grid(DataTable("", {what: TEXT, **dict.fromkeys(names, COUNT)}, rows))


def _write_remarks(remarks: Remarks) -> Iterator[str]:
    """What people say of the run, as a quotation."""
    if remarks.all_tags:
        yield from (f"Tags: {escape_markup(', '.join(remarks.all_tags))}.", "")
    if remarks.text:
        yield from (f"> {escape_markup(line)}" for line in remarks.text.splitlines())
        yield ""


def _write_parts(view: RunView, tables: Mapping[str, DataTable]) -> Iterator[str]:
    """Speeds, models, plans, tools, optimisation and fronts, of a run that has any."""
    if view.speeds:
        yield from ("## Speed", "", f"{view.speed_summary}.", "", *write_grid(tables["speeds"]))
        for reason in list_reasons(view.speeds):
            yield from (f"Not said: {escape_markup(reason)}", "")
        for build in list_builds(view.speeds):
            yield from (escape_markup(build), "")
    if view.models:
        yield from ("## Models", "", *write_grid(tables["models"]))
    if view.plans:
        yield from ("## Plans", "", f"{view.plan_summary}.", "", *write_grid(tables["nodes"]))
    if view.tool_use is not None:
        yield from ("## Tools", "", *(f"- {line}" for line in view.tool_lines), "", *write_grid(tables["tools"]))
    if view.optimised is not None:
        headlines = (f"- {escape_markup(line)}" for line in view.optimised.headlines)
        yield from ("## Optimisation", "", *headlines, "", *write_grid(tables["gains"]), *write_grid(tables["states"]))
    if view.fronts is not None:
        totals = (f"- {escape_markup(line)}" for line in view.fronts.totals)
        yield from ("## Fronts", "", *totals, "", *write_grid(tables["fronts"]))
