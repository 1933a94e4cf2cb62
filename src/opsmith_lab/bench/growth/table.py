"""The tables of growth: a row per question and page, a column per size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from opsmith.report.tables import make_table
from opsmith_lab.bench.growth.measure import StoreGrowth


def tabulate_growth(growths: Sequence[StoreGrowth]) -> Iterator[Table]:
    """What each store took, then how long its questions took."""
    numbers = ("samples", "runs", "written/s", "CPU ms each", "MiB", "bytes each", "peak MiB")
    sizes = make_table(*numbers, right=numbers)
    for growth in growths:
        sizes.add_row(
            f"{growth.samples:,}", f"{growth.runs:,}", f"{growth.per_second:,.0f}",
            f"{1e3 * growth.fill_cpu_s / growth.samples:.2f}", f"{growth.bytes / 2**20:,.1f}",
            f"{growth.bytes_per_sample:,.0f}", f"{growth.fill_memory_mib:.0f}",
        )  # fmt: skip
    yield sizes
    yield _tabulate_times(growths)


def _tabulate_times(growths: Sequence[StoreGrowth]) -> Table:
    sizes = [f"{growth.samples:,}" for growth in growths]
    times = make_table(
        "question: s / CPU s / MiB", *sizes, right=sizes, title="medians; MiB: by how much its process grew"
    )
    for row in zip(*(growth.questions for growth in growths), strict=True):
        times.add_row(row[0].question, *(f"{x.median:.3f} / {x.cpu:.3f} / {x.memory_mib:.0f}" for x in row))
    times.add_section()
    for page in zip(*(growth.pages for growth in growths), strict=True):
        times.add_row(f"page: {page[0].page}", *(f"{x.median / 1e3:.3f}" for x in page))
    return times
