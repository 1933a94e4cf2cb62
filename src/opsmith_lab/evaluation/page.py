"""The page of an experiment, in Markdown: result, tables, figures, the paper's numbers, runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.models.roles import shorten_model
from opsmith.records import printable
from opsmith_lab.evaluation.analysis import Analysis, Grid, format_number
from opsmith_lab.evaluation.marks import describe_mark, describe_size
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


def escape_text(value: str) -> str:
    """A text from outside as a part of Markdown that is nothing but text."""
    line = printable(" ".join(value.split()))
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", line)


def write_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escape_text, columns))} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_text, row))} |"
    yield ""


def _write_head(study: Study, analysis: Analysis, provenance: ResultsOrigin) -> Iterator[str]:
    yield f"# {escape_text(study.experiment.name)}: {escape_text(study.experiment.title)}\n"
    if statement := describe_mark(study):
        yield f"**{statement[0].upper()}{statement[1:]}. These results say nothing about language models.**\n"
    if study.stopped:
        yield f"**Not complete: it stopped ({escape_text(study.stopped)}). The same command goes on from there.**\n"
    yield f"{escape_text(study.experiment.shows)}\n"
    yield f"**Result.** {escape_text(analysis.headline)}\n"
    origin = f"`{provenance.command}` on {provenance.date}, opsmith {provenance.version}"
    yield f"Made with {origin}. {describe_size(study)}.\n"
    yield f"{analysis.intervals or INTERVALS}\n"


def _write_body(study: Study, analysis: Analysis, figures: Sequence[str]) -> Iterator[str]:
    for name in figures:
        yield f"![{escape_text(study.experiment.title)}]({name})\n"
    for grid in analysis.grids:
        if grid.rows:
            yield f"## {escape_text(grid.title)}\n"
            yield from write_table(grid.columns, grid.rows)


def _write_tail(study: Study, analysis: Analysis) -> Iterator[str]:
    paper = _tabulate_paper(study)
    if paper.rows:
        yield f"## {paper.title}\n"
        yield from write_table(paper.columns, paper.rows)
    notes = (*study.experiment.notes, *analysis.notes)
    if notes:
        yield "## Notes\n"
        yield from (f"- {escape_text(note)}" for note in notes)
        yield ""
    yield "## Settings and runs\n"
    yield from (f"- {line}" for line in _describe_settings(study))
    yield ""
    yield from write_table(_RUN, [_format_run(run) for run in study.observed])


def _tabulate_paper(study: Study) -> Grid:
    """All that the paper says in words and tables; what it shows in figures only is not read off them."""
    rows = [
        (statement.place, shorten_model(statement.model), statement.arm, statement.measure, of, f"{value:.4g}")
        for statement in study.experiment.paper
        for of, value in statement.values.items()
    ]
    columns = ("place", "model", "arm", "measure", "of", "value")
    return Grid("What the paper says, of its 26 tasks", columns, tuple(rows))


def _describe_settings(study: Study) -> Iterator[str]:
    """What the arms of a model have in common, from what its runs were made with."""
    for series in study.series_names:
        own = [run for run in study.observed if run.series == series]
        common = dict(own[0].settings.items())
        for run in own:
            common = {name: value for name, value in common.items() if run.settings.get(name) == value}
        values = ", ".join(f"{name} = {_format_setting(common[name])}" for name in _SAID if name in common)
        yield f"{escape_text(series)}: {escape_text(values)}"


_SAID = (
    "samples", "temperatures", "levels", "agents", "guardian", "selection", "repair", "prompt", "max_rounds",
    "max_tokens", "noise", "optimise", "objective", "attempts", "beam", "fixes", "refine", "plateau", "analyst",
    "profiles", "memory", "example_pair", "reference", "plan", "planner", "plan_after", "splits", "depth", "tools",
    "reasoning", "think", "policy", "translate", "example",
)  # fmt: skip
_RUN = ("arm", "model", "seed", "run", "ended", "rounds", "solved", "requests", "input tokens", "output tokens", "USD")


def _format_setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _format_run(run: ObservedRun) -> tuple[str, ...]:
    usage, result = run.usage, run.result
    rounds = 1 if run.arm.first_round_of else len(result.rounds)
    solved = sum(right > 0 for _, right in run.count_samples(result.per_task, best=False))
    cost = "unknown" if usage.cost_usd is None else format_number(usage.cost_usd, ",.4f") if usage.cost_usd else "0"
    end = f"first round of {run.arm.first_round_of}" if run.arm.first_round_of else result.end
    counts = (usage.requests, usage.input_tokens, usage.output_tokens)
    place = (run.arm.name, shorten_model(result.model), str(run.seed), result.run, end, str(rounds))
    return (*place, f"{solved}/{len(result.per_task)}", *(f"{count:,}" for count in counts), cost)
