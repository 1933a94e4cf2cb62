"""How is the result of an experiment read? One page of Markdown: result, tables, figures, the paper's numbers, runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.evaluation.found import Analysis, Grid, number, short
from opsmith.evaluation.marks import mark
from opsmith.evaluation.study import Observed, Study
from opsmith.records import printable

INTERVALS = (
    "Values are means over seeds, the value of each seed in parentheses. Brackets hold 95 % bootstrap intervals over "
    "samples (tasks and seeds fixed): they say nothing about other seeds or other tasks. Those of pass@n reach "
    "downward only: samples drawn again of a task without a right answer hold none."
)


@dataclass(frozen=True)
class Made:
    """How and when a result was made."""

    command: str
    date: str  # 2026-01-31
    version: str


def page(study: Study, analysis: Analysis, made: Made, figures: Sequence[str]) -> str:
    """The whole page; `figures` are the names of its SVG files."""
    return "\n".join([*_head(study, analysis, made), *_body(study, analysis, figures), *_tail(study, analysis)])


def text(value: str) -> str:
    """A text from outside as a part of Markdown that is nothing but text."""
    line = printable(" ".join(value.split()))
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", line)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(text, columns))} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(text, row))} |"
    yield ""


def _head(study: Study, analysis: Analysis, made: Made) -> Iterator[str]:
    yield f"# {text(study.experiment.name)}: {text(study.experiment.title)}\n"
    if said := mark(study):
        yield f"**{said[0].upper()}{said[1:]}. Nothing here speaks of language models where it stands.**\n"
    if study.stopped:
        yield f"**Not complete: it stopped ({text(study.stopped)}). The same command goes on from there.**\n"
    yield f"{text(study.experiment.shows)}\n"
    yield f"**Result.** {text(analysis.headline)}\n"
    yield f"Made with `{made.command}` on {made.date}, opsmith {made.version}. {_size(study)}\n"
    yield f"{INTERVALS}\n"


def _size(study: Study) -> str:
    seeds = sorted({item.seed for item in study.observed})
    samples = sum(tally.judged for item in study.observed if not item.arm.first_round_of for tally in item.tallies)
    return f"{len(study.tasks)} tasks, seeds {', '.join(map(str, seeds))}, {samples:,} judged samples."


def _body(study: Study, analysis: Analysis, figures: Sequence[str]) -> Iterator[str]:
    for name in figures:
        yield f"![{text(study.experiment.title)}]({name})\n"
    for grid in analysis.grids:
        if grid.rows:
            yield f"## {text(grid.title)}\n"
            yield from table(grid.columns, grid.rows)


def _tail(study: Study, analysis: Analysis) -> Iterator[str]:
    paper = _paper(study)
    if paper.rows:
        yield f"## {paper.title}\n"
        yield from table(paper.columns, paper.rows)
    notes = (*study.experiment.notes, *analysis.notes)
    if notes:
        yield "## Notes\n"
        yield from (f"- {text(note)}" for note in notes)
        yield ""
    yield "## Settings and runs\n"
    yield from (f"- {line}" for line in _settings(study))
    yield ""
    yield from table(_RUN, [_run(item) for item in study.observed])


def _paper(study: Study) -> Grid:
    """All that the paper says in words and tables; what it shows in figures only is not read off them."""
    rows = [
        (item.place, short(item.model), item.arm, item.measure, of, f"{value:.4g}")
        for item in study.experiment.paper
        for of, value in item.values.items()
    ]
    columns = ("place", "model", "arm", "measure", "of", "value")
    return Grid("What the paper says, of its 26 tasks", columns, tuple(rows))


def _settings(study: Study) -> Iterator[str]:
    """What the arms of a model have in common, from what its runs were made with."""
    for series in study.series:
        own = [item for item in study.observed if item.series == series]
        common = dict(own[0].settings.items())
        for item in own:
            common = {name: value for name, value in common.items() if item.settings.get(name) == value}
        said = ", ".join(f"{name} = {_value(common[name])}" for name in _SAID if name in common)
        yield f"{text(series)}: {text(said)}"


_SAID = (
    "samples", "temperatures", "levels", "agents", "guardian", "selection", "repair", "prompt", "max_rounds",
    "max_tokens", "noise",
)  # fmt: skip
_RUN = ("arm", "model", "seed", "run", "ended", "rounds", "solved", "requests", "input tokens", "output tokens", "USD")


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _run(item: Observed) -> tuple[str, ...]:
    usage, result = item.usage, item.result
    rounds = 1 if item.arm.first_round_of else len(result.rounds)
    solved = sum(right > 0 for _, right in item.counts(result.per_task, best=False))
    cost = "unknown" if usage.cost_usd is None else number(usage.cost_usd, ",.4f") if usage.cost_usd else "0"
    end = f"first round of {item.arm.first_round_of}" if item.arm.first_round_of else result.end
    counts = (usage.requests, usage.input_tokens, usage.output_tokens)
    place = (item.arm.name, short(result.model), str(item.seed), result.run, end, str(rounds))
    return (*place, f"{solved}/{len(result.per_task)}", *(f"{count:,}" for count in counts), cost)
