"""Fronts in words: a table with a row for each task, the totals below it, and the same for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rich.console import Console

from opsmith.measuring.objectives import order_objectives
from opsmith.records import Objective
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, DataTable, Said
from opsmith.report.speeds import write_count
from opsmith.report.tables import NOTHING, count_noun, list_names
from opsmith.results.fronts import REFERENCE, TaskFront, measure_own_share, read_fronts
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.suites import find_bundled

_MOST_TASKS = 12  # that a line names


def print_task_fronts(console: Console, fronts: Sequence[TaskFront]) -> None:
    """The table, and what it comes to."""
    console.print(tabulate_fronts(fronts))
    for line in list_totals(fronts):
        console.print(line, markup=False, soft_wrap=True)


def tabulate_fronts(fronts: Sequence[TaskFront]) -> DataTable:
    """A row for each task: how many programs, how many of them no other beats, the least of each figure, the volume."""
    rows = [
        (
            Said(front.task, link=("task", front.task)),
            len(front.programs),
            len(front.front),
            *(_compare_best(front, objective) for objective in front.objectives),
            Said(write_share(front.hypervolume), front.hypervolume) if front.front else None,
        )
        for front in fronts
    ]
    columns = {"task": TEXT, "right": COUNT, "front": COUNT}
    columns |= {head_figure(own): own.unit if own.is_counted else RATIO for own in fronts[0].objectives}
    return DataTable("", {**columns, "hypervolume": SHARE}, rows, ("right", "front"))


def list_totals(fronts: Sequence[TaskFront]) -> list[str]:
    """What the fronts come to together, in sentences."""
    solved = [front for front in fronts if front.front]
    points, programs = sum(len(front.front) for front in solved), sum(len(front.programs) for front in solved)
    held = f"{count_noun(programs, 'program')} of {len(solved)} of {count_noun(len(fronts), 'task')}"
    lines = [f"{held}, {points} that no other one beats"]
    for objective in fronts[0].objectives:
        better = [front.task for front in fronts if front.is_above_own(objective.name)]
        named = f": {list_names(better, _MOST_TASKS)}" if better else ""
        count = f"{count_noun(len(better), 'task')}{named}"
        words = f"{'fewer' if objective.is_less_better else 'more'} {objective.unit}"
        words = words if objective.is_counted else f"less {objective.name}"
        lines.append(f"{words} than the task's own program: {count}")
    volumes = [front.hypervolume for front in solved if front.hypervolume is not None]
    if volumes:
        own, mean = measure_own_share(len(fronts[0].names)), sum(volumes) / len(volumes)
        box = f"the share of the box up to {REFERENCE:g} times the own program's figures"
        share = f"mean {mean:.4f} over {count_noun(len(volumes), 'task')}; the own program alone has {own:.4f}"
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
        "below_own": [name for name in front.names if front.is_above_own(name)],
        "front": [
            {"program": point.program, "run": point.run, "sample": point.sample}
            | {"figures": dict(zip(front.names, point.figures, strict=True))}
            for point in front.front
        ],
    }


def head_figure(objective: Objective) -> str:
    """The heading of what `compare_best` says."""
    unit = objective.unit if objective.is_counted else f"{objective.name}, times the own program's"
    return f"{unit}: {word_best(objective)} (own)"


def word_best(objective: Objective) -> str:
    """What the best of its values is."""
    return "least" if objective.is_less_better else "most"


def word_figure(name: str) -> str:
    """
    >>> word_figure("on_chip_bytes")
    'on chip bytes'
    """
    return name.replace("_", " ")


def write_value(objective: Objective, value: float) -> str:
    """A figure as a table shows it: times are relative to that of the task's own program."""
    return write_count(value) if objective.is_counted else f"{value:.3f}"


def _compare_best(front: TaskFront, objective: Objective) -> Said:
    """The best of a figure in a front, and the own program's."""
    best, place = front.find_best(objective.name), front.objectives.index(objective)
    figures = (None if best is None else best.figures[place], None if front.own is None else front.own[place])
    best_words, own_words = (NOTHING if figure is None else write_value(objective, figure) for figure in figures)
    words = NOTHING if (best, front.own) == (None, None) else f"{best_words} ({own_words})"
    return Said(words, dict(zip((word_best(objective), "own"), figures, strict=True)))


def write_share(share: float | None) -> str:
    """A hypervolume as a table shows it."""
    return NOTHING if share is None else f"{share:.4f}"


_find_bundled = lru_cache(maxsize=256)(find_bundled)


@dataclass(frozen=True)
class FrontView:
    """The fronts of a run's tasks."""

    fronts: tuple[TaskFront, ...]
    table: DataTable
    totals: tuple[str, ...]


def view_fronts(store: Store, run: str, speeds: Sequence[StoredSpeed]) -> FrontView | None:
    """None where fewer than two figures are stored of its programs: there is nothing to weigh. `speeds`: the run's."""
    objectives = order_objectives(speed.report.measurement for speed in speeds)
    if len(objectives) < 2:
        return None
    bundled = [(task, _find_bundled(task)) for task in store.read_tasks(run)]  # a stored task has no program
    tasks = [task if own is None else replace(task, impl=own.impl) for task, own in bundled]
    tasks.sort(key=lambda task: task.id)
    fronts = tuple(read_fronts(store, [run], tasks, objectives))
    return FrontView(fronts, tabulate_fronts(fronts), tuple(list_totals(fronts)))
