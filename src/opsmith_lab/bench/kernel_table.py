"""The table of a suite's speeds, for a terminal and as Markdown: times, ratios with intervals, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from opsmith.report.speeds import write_interval, write_percent, write_time
from opsmith.report.tables import NOTHING
from opsmith_lab.bench.kernel_speeds import KernelSpeed, KernelSpeeds
from opsmith_lab.bench.tables import group_reasons, name_sizes, tabulate_cells, write_cells

_COLUMNS = (
    "problem",
    "shape set",
    "plain",
    "program",
    "eager",
    "compile",
    "program to plain",
    "eager to plain",
    "compile to plain",
    "program over the faster of torch",
    "claim",
    "of the limit",
)
_TEXTS = ("problem", "shape set", "claim")


def tabulate_kernels(speeds: KernelSpeeds) -> Table:
    """For a terminal."""
    return tabulate_cells(_COLUMNS, _TEXTS, map(_write_row, speeds.rows))


def write_markdown(speeds: KernelSpeeds, command: str) -> str:
    """A page with the command that made it, what it was measured with, the table, the mean, and what is missing."""
    table = write_cells(_COLUMNS, _TEXTS, map(_write_row, speeds.rows))
    notes = "\n".join(f"- {note}" for note in list_missing(speeds))
    sections = [
        "# Speeds of kernels",
        f"```sh\n{command}\n```",
        "\n".join(f"- {line}" for line in describe_setting(speeds)),
        "Times are of one call. Ratios to the plain program: its time by theirs, above 1 they are faster. The next "
        "column is the time of the faster of eager and compile by the program's, chained through the plain program. "
        "In brackets: 95 % intervals of the measuring.",
        table,
        f"**{describe_mean(speeds)}**",
        f"Missing:\n\n{notes}" if notes else "Nothing is missing.",
    ]
    return "\n\n".join(sections) + "\n"


def describe_setting(speeds: KernelSpeeds) -> list[str]:
    """What it was measured with."""
    builds = dict.fromkeys(row.flags for row in speeds.rows if row.flags)
    device = speeds.device
    return [
        f"processor: {device.name}, {device.cores} cores; torch and programs on as many threads as the task states",
        f"grade: {speeds.grade.value}",
        f"torch {speeds.torch}: eager, and `torch.compile` as it is by default with one graph; no gradients",
        *(f"built by `{build}`" for build in builds),
    ]


def describe_mean(speeds: KernelSpeeds) -> str:
    if speeds.mean is None:
        return "no program has a ratio to torch"
    rows = f"{speeds.count} of {len(speeds.rows)} rows"
    return f"geometric mean of the programs over the faster of eager and compile: {speeds.mean} ({rows})"


def list_missing(speeds: KernelSpeeds) -> Iterator[str]:
    """Why figures are missing: each reason once, with the rows that it is of."""
    reasons = ((f"{row.task} {row.shape_set}", reason) for row in speeds.rows for reason in row.reasons)
    for reason, names in group_reasons(reasons).items():
        where = ", ".join(names) if len(names) < len(speeds.rows) else "all rows"
        yield f"{where}: {reason}"


def _write_row(row: KernelSpeed) -> list[str]:
    times = (row.plain, row.program, row.eager, row.compile)
    ratios = (row.program_ratio, row.eager_ratio, row.compile_ratio)
    return [
        row.task,
        name_sizes(row.shape_set, row.sizes),
        *(NOTHING if time is None else write_time(time) for time in times),
        *map(write_interval, ratios),
        write_interval(row.over_torch) + (f" to {row.faster}" if row.over_torch is not None else ""),
        row.claim or NOTHING,
        write_percent(row.share),
    ]
