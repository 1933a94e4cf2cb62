"""Fronts in words: a table with a row for each task, the totals below it, and the same for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from opsmith.measuring.objectives import TIME
from opsmith.report.speed_rows import NOTHING
from opsmith.report.tables import list_names, make_table
from opsmith.results.fronts import REFERENCE, FrontPoint, TaskFront, measure_own_share

_MOST_TASKS = 12  # that a line names
_LESS = {
    TIME: "less time",
    "cycles": "fewer cycles",
    "on_chip_bytes": "fewer bytes on the chip",
    "off_chip_bytes": "fewer bytes off the chip",
}


def print_task_fronts(console: Console, fronts: Sequence[TaskFront]) -> None:
    """The table, and what it comes to."""
    console.print(tabulate_fronts(fronts))
    for line in list_totals(fronts):
        console.print(line, markup=False, soft_wrap=True)


def tabulate_fronts(fronts: Sequence[TaskFront]) -> Table:
    """A row for each task: how many programs, how many of them no other beats, the least of each figure, the volume."""
    names = fronts[0].names
    figures = [f"{word_figure(name)}: least, own" for name in names]
    numbers = ("right", "front", *figures, "hypervolume")
    table = make_table("task", *numbers, right=numbers, least=("right", "front"))
    for front in fronts:
        table.add_row(
            front.task,
            str(len(front.programs)),
            str(len(front.front)),
            *(compare_least(front, name) for name in names),
            write_share(front.hypervolume if front.front else None),
        )
    return table


def list_totals(fronts: Sequence[TaskFront]) -> list[str]:
    """What the fronts come to together, in sentences."""
    solved = [front for front in fronts if front.front]
    points, programs = sum(len(front.front) for front in solved), sum(len(front.programs) for front in solved)
    lines = [f"{programs} programs of {len(solved)} of {len(fronts)} tasks, {points} that no other one beats"]
    for name in fronts[0].names:
        below = [front.task for front in fronts if front.is_below_own(name)]
        named = f": {list_names(below, _MOST_TASKS)}" if below else ""
        count = f"{len(below)} task{'s' * (len(below) != 1)}{named}"
        lines.append(f"{_LESS[name]} than the task's own program: {count}")
    volumes = [front.hypervolume for front in solved if front.hypervolume is not None]
    if volumes:
        own, mean = measure_own_share(len(fronts[0].names)), sum(volumes) / len(volumes)
        box = f"the share of the box up to {REFERENCE:g} times the own program's figures"
        share = f"mean {mean:.4f} of {len(volumes)} tasks; the own program alone has {own:.4f}"
        lines.append(f"hypervolume, {box}: {share}")
    if lacking := sum(front.lacking for front in fronts):
        lines.append(f"right programs with a figure that cannot be said, which are in no front: {lacking}")
    return lines


def write_fronts_json(runs: Sequence[str], fronts: Sequence[TaskFront]) -> dict[str, Any]:
    """What `opsmith pareto --json` prints."""
    return {
        "runs": list(runs),
        "figures": list(fronts[0].names),
        "reference": REFERENCE,
        "tasks": [write_front_json(front) for front in fronts],
    }


def write_front_json(front: TaskFront) -> dict[str, Any]:
    """One task's front, as files and answers hold it."""
    return {
        "task": front.task,
        "own": None if front.own is None else dict(zip(front.names, front.own, strict=True)),
        "programs": len(front.programs),
        "lacking": front.lacking,
        "hypervolume": front.hypervolume if front.front else None,
        "below_own": [name for name in front.names if front.is_below_own(name)],
        "front": [_write_point(front, point) for point in front.front],
    }


def word_figure(name: str) -> str:
    """
    >>> word_figure("on_chip_bytes")
    'on chip bytes'
    """
    return name.replace("_", " ")


def write_value(name: str, value: float) -> str:
    """A figure as a table shows it: times are relative to that of the task's own program."""
    return f"{value:.3f}" if name == TIME else f"{value:,.0f}"


def _write_point(front: TaskFront, point: FrontPoint) -> dict[str, Any]:
    figures = dict(zip(front.names, point.figures, strict=True))
    return {"program": point.program, "run": point.run, "sample": point.sample, "figures": figures}


def compare_least(front: TaskFront, name: str) -> str:
    """The least of a figure in a front, and the own program's."""
    least, place = front.find_least(name), front.names.index(name)
    words = NOTHING if least is None else write_value(name, least.figures[place])
    own = NOTHING if front.own is None else write_value(name, front.own[place])
    return f"{words}, {own}"


def write_share(share: float | None) -> str:
    """A hypervolume as a table shows it."""
    return NOTHING if share is None else f"{share:.4f}"
