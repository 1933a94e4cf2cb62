"""The page of an experiment, in Markdown: result, tables, figures, the paper's numbers, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, SHARE, TEXT, USD, DataTable, Said, Value, escape_markup, write_grid
from opsmith.results.settings_apart import write_setting
from opsmith_lab.evaluation.analysis import Analysis
from opsmith_lab.evaluation.charts import describe_mark, describe_size
from opsmith_lab.evaluation.study import ObservedRun, Study

INTERVALS = (
    "Values are means over seeds, the value of each seed in parentheses. Brackets hold 95 % intervals: of pass@n over "
    "tasks (Wilson's); of a ratio of pass@n over tasks and seeds, which are drawn anew, the same ones for both arms, "
    "and not at all for fewer than 5 tasks; of all else over samples (tasks and seeds fixed), which say nothing about "
    "other seeds or other tasks."
)


@dataclass(frozen=True)
class ResultsOrigin:
    """How and when a result was made."""

    command: str
    date: str  # 2026-01-31
    version: str


def write_page(study: Study, analysis: Analysis, provenance: ResultsOrigin, figures: Sequence[str]) -> str:
    """The whole page; `figures` are the names of its SVG files."""
    return "\n".join(
        [
            *_write_head(study, analysis, provenance),
            *_write_body(study, analysis, figures),
            *_write_tail(study, analysis),
        ]
    )


def _write_head(study: Study, analysis: Analysis, provenance: ResultsOrigin) -> Iterator[str]:
    yield f"# {escape_markup(study.experiment.name)}: {escape_markup(study.experiment.title)}\n"
    if statement := describe_mark(study):
        yield f"**{statement[0].upper()}{statement[1:]}. These results say nothing about language models.**\n"
    if study.stopped:
        yield f"**Not complete: it stopped ({escape_markup(study.stopped)}). The same command goes on from there.**\n"
    yield f"{escape_markup(study.experiment.shows)}\n"
    yield f"**Result.** {escape_markup(analysis.headline)}\n"
    origin = f"`{provenance.command}` on {provenance.date}, opsmith {provenance.version}"
    yield f"Made with {origin}. {describe_size(study)}.\n"
    yield f"{analysis.intervals or INTERVALS}\n"


def _write_body(study: Study, analysis: Analysis, figures: Sequence[str]) -> Iterator[str]:
    for name in figures:
        yield f"![{escape_markup(study.experiment.title)}]({name})\n"
    for table in (*analysis.tables, _tabulate_paper(study)):
        if table.rows:
            yield from (f"## {escape_markup(table.title)}\n", *write_grid(table))


def _write_tail(study: Study, analysis: Analysis) -> Iterator[str]:
    notes = (*study.experiment.notes, *analysis.notes)
    if notes:
        yield "## Notes\n"
        yield from (f"- {escape_markup(note)}" for note in notes)
        yield ""
    yield "## Settings and runs\n"
    yield from (f"- {line}" for line in _describe_settings(study))
    yield ""
    yield from write_grid(DataTable("", _RUN, list(map(_list_cells, study.observed))))


def _tabulate_paper(study: Study) -> DataTable:
    """All that the paper says in words and tables; what it shows in figures only is not read off them."""
    rows = [
        (statement.place, shorten_model(statement.model), statement.arm, statement.measure, of, Said(f"{value:.4g}"))
        for statement in study.experiment.paper
        for of, value in statement.values.items()
    ]
    columns = {**dict.fromkeys(("place", "model", "arm", "measure", "of"), TEXT), "value": SHARE}
    return DataTable("What the paper says, of its 26 tasks", columns, rows)


def _describe_settings(study: Study) -> Iterator[str]:
    """What the arms of a model have in common, from what its runs were made with."""
    for series in study.series_names:
        own = [run for run in study.observed if run.series == series]
        common = dict(own[0].settings.items())
        for run in own:
            common = {name: value for name, value in common.items() if run.settings.get(name) == value}
        values = ", ".join(f"{name} = {write_setting(common[name])}" for name in _SAID if name in common)
        yield f"{escape_markup(series)}: {escape_markup(values)}"


_SAID = (
    "samples", "temperatures", "levels", "agents", "guardian", "selection", "repair", "prompt", "max_rounds",
    "max_tokens", "noise", "optimise", "objective", "attempts", "beam", "fixes", "refine", "plateau", "analyst",
    "profiles", "memory", "example_pair", "reference", "plan", "planner", "plan_after", "splits", "depth", "tools",
    "reasoning", "think", "policy", "translate", "example",
)  # fmt: skip
_RUN = {
    **dict.fromkeys(("arm", "model", "seed", "run", "ended"), TEXT),
    **dict.fromkeys(("rounds", "solved", "requests", "input tokens", "output tokens"), COUNT),
    "cost": USD,
}


def _list_cells(run: ObservedRun) -> tuple[Value, ...]:
    usage, result, first_of = run.usage, run.result, run.arm.first_round_of
    solved = sum(right > 0 for _, right in run.count_samples(result.per_task, best=False))
    end, rounds = (f"first round of {first_of}", 1) if first_of else (result.end, len(result.rounds))
    place = (run.arm.name, shorten_model(result.model), str(run.seed), result.run, end, rounds)
    counts = (usage.requests, usage.input_tokens, usage.output_tokens)
    return (*place, Said(f"{solved}/{len(result.per_task)}", solved), *counts, usage)
