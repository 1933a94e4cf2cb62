"""How is the growth shown? A row per question and page, a column per size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from opsmith.growth.measure import Measured
from opsmith.report.tables import table


def growth_tables(found: Sequence[Measured]) -> Iterator[Table]:
    """What each store took, then how long its questions took."""
    numbers = ("samples", "runs", "written/s", "CPU ms each", "MiB", "bytes each", "peak MiB")
    made = table(*numbers, right=numbers)
    for one in found:
        made.add_row(
            f"{one.samples:,}", f"{one.runs:,}", f"{one.per_second:,.0f}", f"{1e3 * one.fill_cpu_s / one.samples:.2f}",
            f"{one.bytes / 2**20:,.1f}", f"{one.bytes_per_sample:,.0f}", f"{one.fill_memory_mib:.0f}",
        )  # fmt: skip
    yield made
    yield _times(found)


def _times(found: Sequence[Measured]) -> Table:
    sizes = [f"{one.samples:,}" for one in found]
    made = table("question: s / CPU s / MiB", *sizes, right=sizes, title="medians; MiB: by how much its process grew")
    for row in zip(*(one.questions for one in found), strict=True):
        made.add_row(row[0].question, *(f"{x.median:.3f} / {x.cpu:.3f} / {x.memory_mib:.0f}" for x in row))
    made.add_section()
    for page in zip(*(one.pages for one in found), strict=True):
        made.add_row(f"page: {page[0].page}", *(f"{x.median / 1e3:.3f}" for x in page))
    return made
