"""What the tables of measured programs share: a terminal's grid, the rows of a page, and why figures are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from opsmith.report.speeds import write_sizes
from opsmith.report.tables import make_table


def tabulate_cells(columns: Sequence[str], texts: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """For a terminal. `texts`: the columns that hold no numbers."""
    grid = make_table(*columns, right=[name for name in columns if name not in texts])
    for cells in rows:
        grid.add_row(*cells)
    return grid


def write_cells(columns: Sequence[str], texts: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The same as Markdown.

    >>> print(write_cells(["task", "time"], ["task"], [["gemm", "3 µs"]]))
    | task | time |
    | --- | ---: |
    | gemm | 3 µs |
    """
    rules = ["---" if name in texts else "---:" for name in columns]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [columns, rules, *rows])


def name_sizes(shape_set: str, sizes: Mapping[str, int]) -> str:
    """A shape set with its sizes, where they are known."""
    return f"{shape_set} ({write_sizes(sizes)})" if sizes else shape_set


def group_reasons(reasons: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """By reason the places that it is of, both in their order; `reasons`: pairs of place and reason.

    >>> group_reasons([("gemm", "no torch"), ("softmax", "no torch")])
    {'no torch': ['gemm', 'softmax']}
    """
    places: dict[str, list[str]] = {}
    for place, reason in reasons:
        places.setdefault(reason.replace("|", "/"), []).append(place)
    return places
