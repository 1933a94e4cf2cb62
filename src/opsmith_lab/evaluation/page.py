"""The page of an experiment, in Markdown: result, tables, figures, the paper's numbers, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from opsmith.report.record import escape_markup, write_grid
from opsmith_lab.evaluation.analysis import Analysis, ExperimentReport

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


def write_page(report: ExperimentReport, analysis: Analysis, provenance: ResultsOrigin, figures: Sequence[str]) -> str:
    """The whole page; `figures` are the names of its SVG files."""
    return "\n".join(
        [
            *_write_head(report, analysis, provenance),
            *_write_body(report, analysis, figures),
            *_write_tail(report, analysis),
        ]
    )


def _write_head(report: ExperimentReport, analysis: Analysis, provenance: ResultsOrigin) -> Iterator[str]:
    yield f"# {escape_markup(report.name)}: {escape_markup(report.title)}\n"
    if report.mark:
        yield f"**{report.mark[0].upper()}{report.mark[1:]}. These results say nothing about language models.**\n"
    if report.stopped:
        yield f"**Not complete: it stopped ({escape_markup(report.stopped)}). The same command goes on from there.**\n"
    yield f"{escape_markup(report.shows)}\n"
    yield f"**Result.** {escape_markup(analysis.headline)}\n"
    origin = f"`{provenance.command}` on {provenance.date}, opsmith {provenance.version}"
    yield f"Made with {origin}. {report.size}.\n"
    yield f"{analysis.intervals or INTERVALS}\n"


def _write_body(report: ExperimentReport, analysis: Analysis, figures: Sequence[str]) -> Iterator[str]:
    for name in figures:
        yield f"![{escape_markup(report.title)}]({name})\n"
    for table in (*analysis.tables, *report.paper):
        if table.rows:
            yield from (f"## {escape_markup(table.title)}\n", *write_grid(table))


def _write_tail(report: ExperimentReport, analysis: Analysis) -> Iterator[str]:
    notes = (*report.notes, *analysis.notes)
    if notes:
        yield "## Notes\n"
        yield from (f"- {escape_markup(note)}" for note in notes)
        yield ""
    if report.tables:
        yield "## Settings and runs\n"
        yield from (f"- {escape_markup(line)}" for line in report.settings)
        yield ""
        yield from chain.from_iterable(map(write_grid, report.tables))
