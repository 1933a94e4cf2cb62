"""The table of an optimisation pass: for a terminal and as a Markdown page with all that it was made with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from opsmith.report.speeds import write_interval, write_percent, write_time
from opsmith.report.tables import NOTHING, count_noun
from opsmith_lab.bench.flag_speeds import FLAG_SETS
from opsmith_lab.bench.tables import group_reasons, name_sizes, tabulate_cells, write_cells
from opsmith_lab.bench.tuned_speeds import LARGE_GAIN, TunedSpeed, TunedSpeeds

NOT_MEASURED = "not measured"
_COLUMNS = (
    "problem",
    "sizes",
    "plain",
    "best",
    "best to plain",
    "claim",
    "over all sizes",
    "plain with the best flags",
    "best to that",
    "of the limit",
    "best to eager",
    "best to compile",
    "right of attempts",
)
_TEXTS = ("problem", "sizes", "claim")


def tabulate_tuned(speeds: TunedSpeeds) -> Table:
    """For a terminal."""
    return tabulate_cells(_COLUMNS, _TEXTS, map(_write_row, speeds.rows))


def write_markdown(speeds: TunedSpeeds, facts: Mapping[str, str]) -> str:
    """A page. `facts`: what the pass was made with, such as its command, by what they are."""
    flag_sets = ", ".join(f"`{flags}`" for flags in FLAG_SETS)
    changes = (
        f"- {row.task}: {'; '.join(row.program.changes if row.program is not None else ()) or 'nothing'}"
        for row in speeds.rows
    )
    sections = [
        "# The optimisation pass on kernels in C",
        "\n".join(f"- {name}: {fact}" for name, fact in {**facts, **describe_setting(speeds)}.items()),
        "Times are of one call. Ratios are of the best program, above 1 it is the faster one, with 95 % intervals of "
        "the measuring in brackets. *Best to plain* is measured by full grade, by two clocks, with the same flags on "
        "both sides, at these sizes; *claim* says what may be said of it. *Over all sizes* is the figure by which the "
        "pass kept the program: a full grade at all timed sizes, faster at one at least and slower at none. The best "
        f"flags are the fastest of {flag_sets} for the plain program, where they are faster than its own and its "
        "results stay right; these and torch are measured by a screen, and the ratios multiplied.",
        write_cells(_COLUMNS, _TEXTS, map(_write_row, speeds.rows)),
        "\n".join(f"**{line}**  " for line in list_means(speeds)),
        "What was changed, in the order in which it was found:\n\n" + "\n".join(changes),
        "Missing:\n\n" + "\n".join(notes) if (notes := list(list_missing(speeds))) else "Nothing is missing.",
    ]
    return "\n\n".join(sections) + "\n"


def describe_setting(speeds: TunedSpeeds) -> dict[str, str]:
    """What it was measured on."""
    builds = dict.fromkeys(row.build for row in speeds.rows if row.build)
    return {
        "processor": f"{speeds.device.name}, {speeds.device.cores} cores",
        **{f"built by{f' ({number})' if number else ''}": f"`{build}`" for number, build in enumerate(builds)},
    }


def list_means(speeds: TunedSpeeds) -> list[str]:
    """The figures of the whole."""
    gains = sum(row.is_gain for row in speeds.rows)
    return [
        f"geometric mean of best over plain with the same flags: {speeds.mean} "
        f"({len(speeds.rows)} problems, {gains} with a gain that is claimed; the others count as 1)",
        f"above {LARGE_GAIN:g}, interval and all: {speeds.large_gains} of {len(speeds.rows)}",
        f"geometric mean of best over plain with the best flags: {speeds.mean_over_flags or NOT_MEASURED} "
        f"({count_noun(sum(row.over_flags is not None for row in speeds.rows), 'problem')})",
        f"geometric mean of best over the faster of eager and compile: {speeds.mean_over_torch or NOT_MEASURED} "
        f"({count_noun(sum(None not in (row.over_eager, row.over_compile) for row in speeds.rows), 'problem')})",
    ]


def list_missing(speeds: TunedSpeeds) -> Iterator[str]:
    """Why figures are missing: each reason once, with the problems that it is of."""
    for reason, names in group_reasons((row.task, reason) for row in speeds.rows for reason in row.reasons).items():
        yield f"- {', '.join(names)}: {reason}"


def _write_row(row: TunedSpeed) -> list[str]:
    program, flags = row.program, row.flags
    return [
        row.task,
        name_sizes(row.shape_set, row.sizes),
        *(NOTHING if time is None else write_time(time) for time in (row.plain, row.time)),
        write_interval(row.ratio),
        NOTHING if row.claim is None else row.claim.value,
        NOTHING if program is None else write_interval(program.gain),
        "its own" if flags is None else f"{flags.flags}: {write_interval(flags.ratio)}",
        write_interval(row.over_flags),
        write_percent(row.share),
        write_interval(row.over_eager),
        write_interval(row.over_compile),
        NOTHING if program is None else f"{program.right} of {program.attempts}",
    ]
