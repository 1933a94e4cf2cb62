"""Tables of what `opsmith bench verify` and `opsmith bench run` measured, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from opsmith.report.tables import make_table


def bench_table(rows: Mapping[str, Mapping[str, Any]], totals: Mapping[str, Any]) -> Table:
    """Times per task, their ratios to the reference's or the parser's, and the medians over the tasks."""
    numbers = ("check", "/parse", "base", "torch", "ratio", "rest", "large", "torch ", "ratio ", "batch/s", "MiB")
    least = ("MiB", "torch ", "torch", "rest", "/parse", "ratio ", "large")
    grid = make_table("task [ms]", *numbers, right=numbers, least=least)
    for name, row in rows.items():
        batch = row["batch"]
        speed = f"{batch['samples'] / batch['base']:,.0f}" if batch else ""
        check = (f"{1e3 * row['check']:.3f}", f"{row['check'] / row['parse']:.1f}" if row["parse"] else "")
        base, large = _time_cells(row["base"], 3), _time_cells(row["large"], 2) if row["large"] else ("", "", "")
        candidate = f"{1e3 * row['candidate']:.1f}"
        grid.add_row(name, *check, *base, candidate, *large, speed, f"{row['memory_mib']:.0f}")
    grid.add_section()
    for which in ("median", "worst"):
        grid.add_row(which, *_total_cells(totals, which))
    grid.caption = "\n".join([_LEGEND, *_refusal_lines(totals)])
    return grid


_LEGEND = """\
check: the static one, over Python's parse; base, large: a draw at that shape set, over the PyTorch reference;
rest: all draws but large; batch/s: random candidates at base, judged together"""


def _time_cells(row: Mapping[str, Any], digits: int) -> tuple[str, str, str]:
    trial = 1e3 * row["trial"]
    if row["reference"] is None:
        return f"{trial:.{digits}f}", "", ""
    reference = 1e3 * row["reference"]
    return f"{trial:.{digits}f}", f"{reference:.{digits}f}", f"{trial / reference:.1f}"


def overhead_table(figures: Mapping[str, Any]) -> Table:
    """What `opsmith bench run` measured."""
    rows = make_table(
        "requests",
        "at once",
        "wall [s]",
        "ideal [s]",
        "ratio",
        "client ms/request",
        "MiB",
        "growth",
        "judged",
        least=("judged", "growth", "MiB"),
    )
    cells = (
        f"{figures['requests']:,}",
        f"{figures['concurrency']}",
        f"{figures['wall_s']:.1f}",
        f"{figures['ideal_s']:.1f}",
        f"{figures['wall_over_ideal']:.2f}",
        f"{figures['client_cpu_ms_per_request']:.1f}",
        f"{figures['memory_mib']:.0f}",
        f"{figures['memory_growth_mib']:.0f}",
        f"{figures['judged']:,}",
    )
    rows.add_row(*cells)
    return rows


def _total_cells(totals: Mapping[str, Any], which: str) -> list[str]:
    def of(key: str, form: str) -> str:
        return format(totals[key][which], form) if totals[key] else ""

    memory = f"{totals['memory_mib']:.0f}" if which == "worst" else ""
    return [
        "", of("check_over_parse", ".1f"), of("trial_ms", ".3f"), "", of("base_over_reference", ".1f"),
        of("candidate_ms", ".1f"), "", "", of("large_over_reference", ".1f"), of("candidates_per_second", ",.0f"),
        memory,
    ]  # fmt: skip


def _refusal_lines(totals: Mapping[str, Any]) -> list[str]:
    """One line on programs that are refused before they run, and two on batches."""
    lines = []
    if totals["refusal_ms"]:
        ratio = totals["refusal_over_parse"]
        ratio_text = (
            f"; over Python's parse: median {ratio['median']:.1f}, worst task {ratio['worst']:.1f}" if ratio else ""
        )
        lines.append(
            f"{totals['refusals']} refusals before RUN: median {totals['refusal_ms']['median']:.3f} ms, worst "
            f"{totals['refusal_ms']['worst']:.3f} ms{ratio_text}"
        )
    if totals["candidates_per_second"]:
        lines.append(f"candidates at base, in batches: {totals['candidates_per_second_of_all']:,.0f}/s over all tasks")
        speeds = [
            f"{speed:,.0f}/s with {n} worker{'s' * (n > 1)}" for n, speed in totals["verdicts_per_second"].items()
        ]
        lines.append(f"full verdicts on them: {', '.join(speeds)}")
        share = totals["flagged"] / totals["samples"]
        lines.append(f"flagged, so that they are tried at sizes drawn for them: {totals['flagged']}, {share:.1%}")
    return lines
