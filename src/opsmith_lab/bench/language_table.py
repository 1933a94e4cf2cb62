"""The table of languages, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from opsmith.report.tables import NOTHING
from opsmith_lab.bench.languages import LanguageRow
from opsmith_lab.bench.tables import tabulate_cells, write_cells

_COLUMNS = (
    "language",
    "right programs that pass",
    "wrong ones refused where they should be",
    "unjudged",
    "median compile time",
    "median time of a verdict",
    "size of the extra",
    "files",
    "lines",
    "tokens",
    "programs outside its folder",
)
_TEXTS = ("language",)


def tabulate_languages(rows: Sequence[LanguageRow]) -> Table:
    """For a terminal."""
    return tabulate_cells(_COLUMNS, _TEXTS, map(_write_row, rows))


def write_markdown(rows: Sequence[LanguageRow], command: str, machine: str) -> str:
    """A page with the command that made it, the machine, the table, and what is not as it should be."""
    notes = "\n".join(f"- {note}" for note in list_notes(rows))
    sections = [
        "# Languages",
        f"```sh\n{command}\n```",
        f"Machine: {machine}. Verdicts are timed one by one in a warm worker, with nothing built before; right "
        "programs are the problems' plain ones, wrong ones the mistakes of the library of attacks. An extra's size is "
        "that of its packages, without compilers and drivers of the system. Files, lines, and tokens of Python are "
        "those of the language's folder; outside it lie one line of a table, and its programs.",
        "\n".join(f"- {row.language}: {row.verifier}" for row in rows if row.verifier),
        write_cells(_COLUMNS, _TEXTS, map(_write_row, rows)),
        f"Not as it should be:\n\n{notes}" if notes else "Every program was judged as it should be.",
    ]
    return "\n\n".join(sections) + "\n"


def list_notes(rows: Sequence[LanguageRow]) -> Iterator[str]:
    for row in rows:
        if row.lack:
            yield f"{row.language}: not judged: {row.lack}"
        yield from (surprise.replace("|", "/") for surprise in row.surprises)


def _write_row(row: LanguageRow) -> list[str]:
    total = row.programs + row.wrong
    return [
        row.language,
        f"{row.passed} of {row.programs}" if row.programs else NOTHING,
        f"{row.refused} of {row.wrong}" if row.wrong else NOTHING,
        f"{100 * row.unjudged / total:.1f} % of {total}" if total else NOTHING,
        _write_ms(row.compile_ms),
        _write_ms(row.verdict_ms),
        NOTHING if row.extra_bytes is None else f"{row.extra_bytes / 1e6:.1f} MB",
        *(f"{count:,}" if count else NOTHING for count in (row.files, row.lines, row.tokens, row.programs_outside)),
    ]


def _write_ms(milliseconds: float | None) -> str:
    return NOTHING if milliseconds is None else f"{milliseconds:.0f} ms"
