"""The table of an import: what became of each file."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from opsmith.imports.outcomes import ImportReport
from opsmith.report.tables import make_table


def import_parts(report: ImportReport) -> Iterator[Table | str]:
    """The table, the warnings below it, and the sums."""
    numbers = ("MB from", "to", "s")
    table = make_table("file", "problem", *numbers, "why not, or warnings", right=numbers, least=("s", "MB from", "to"))
    for row in report.rows:
        note = row.refusal or "; ".join(row.warnings)
        cells = (_write_megabytes(row.bytes_from), _write_megabytes(row.bytes_to), f"{row.seconds:.1f}")
        table.add_row(row.file, row.problem or "refused", *cells, note)
    yield table
    yield _write_sums(report)


def _write_megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:,.2f}"


def _write_sums(report: ImportReport) -> str:
    warned = sum(bool(row.warnings) for row in report.imported)
    shrunk = sum(
        row.bytes_from is not None and row.bytes_to is not None and row.bytes_to < row.bytes_from
        for row in report.imported
    )
    return (
        f"{len(report.imported)} imported ({shrunk} shrunk, {warned} with warnings), {len(report.refused)} refused; "
        f"{report.seconds:.1f} s, at most {report.peak_bytes / 1e6:.0f} MB in one process"
    )
