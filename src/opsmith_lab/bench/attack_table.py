"""The table of attacks, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from opsmith.report.tables import NOTHING
from opsmith_lab.bench.attacks import CLOCKS, RIGHT, AttackRow
from opsmith_lab.bench.tables import tabulate_cells, write_cells

_COLUMNS = ("language", "class", "tried", "as it should be", "passed", "unjudged", "s each", "pass the usual harness")
_TEXTS = ("language", "class")
_ABOUT_CLOCKS = (
    "What the class clocks has may pass its verdict and is measured then, beside the plain program: passed says whose "
    "gain was believed."
)


def tabulate_attacks(rows: Sequence[AttackRow]) -> Table:
    """For a terminal."""
    return tabulate_cells(_COLUMNS, _TEXTS, map(_write_row, [*rows, *_sum_rows(rows)]))


def write_markdown(rows: Sequence[AttackRow], facts: Mapping[str, str], lacks: Mapping[str, str]) -> str:
    """A page: the command, what it ran on, the table, and what is not as it should be."""
    notes = "\n".join(f"- {note}" for note in list_notes(rows, lacks))
    sections = [
        "# Attacks on the judge",
        f"```sh\n{facts['command']}\n```",
        f"Machine: {facts['machine']}. Level: {facts['level']}, {facts['secrets']}. A wrong program is as it should be "
        "where it is refused under every secret, a right one where it passes under every one. The usual harness, "
        "stated again here: five draws at the base sizes, `allclose` with 1e-2, absolute and relative, nothing else. "
        + _ABOUT_CLOCKS,
        write_cells(_COLUMNS, _TEXTS, map(_write_row, [*rows, *_sum_rows(rows)])),
        f"Not as it should be:\n\n{notes}" if notes else "Every program was judged as it should be.",
    ]
    return "\n\n".join(sections) + "\n"


def list_notes(rows: Sequence[AttackRow], lacks: Mapping[str, str]) -> Iterator[str]:
    for language, lack in lacks.items():
        yield f"{language}: not judged: {lack}"
    for row in rows:
        yield from (surprise.replace("|", "/").replace("\n", " ") for surprise in row.surprises)


def _sum_rows(rows: Sequence[AttackRow]) -> Iterator[AttackRow]:
    """Wrong programs of all languages, and right ones."""
    for kind, chosen in (
        ("all wrong ones", [row for row in rows if row.kind not in (RIGHT, CLOCKS)]),
        ("all right ones", [row for row in rows if row.kind == RIGHT]),
    ):
        total = AttackRow("", kind)
        for row in chosen:
            total.tried += row.tried
            total.passed += row.passed
            total.unjudged += row.unjudged
            total.seconds += row.seconds
            total.verdicts += row.verdicts
            total.usual_passed += row.usual_passed
            total.usual_tried += row.usual_tried
            total.surprises += row.surprises
        if chosen:
            yield total


def _write_row(row: AttackRow) -> list[str]:
    usual = f"{row.usual_passed} of {row.usual_tried}" if row.usual_tried else NOTHING
    return [
        row.language,
        row.kind,
        str(row.tried),
        str(row.as_expected),
        str(row.passed),
        str(row.unjudged),
        f"{row.seconds / max(1, row.verdicts):.2f}",
        usual,
    ]
