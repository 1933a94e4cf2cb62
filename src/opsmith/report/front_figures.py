"""The picture of fronts: a small field for each task, its right programs by two figures beside its own program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opsmith.report.curves import Figure
from opsmith.report.figures import grid_chart
from opsmith.report.fronts import word_figure
from opsmith.results.fronts import TaskFront

OWN, FRONT, BEATEN = "the task's own program", "no other one beats it", "beaten"


def draw_fronts(fronts: Sequence[TaskFront]) -> Figure | None:
    """The first two figures of each task; None: there is one figure, or no task with its own program and another."""
    drawn = [front for front in fronts if front.own is not None and front.programs and len(front.names) > 1]
    if not drawn:
        return None
    first, second = (word_figure(name) for name in drawn[0].names[:2])
    caption = f"Right programs by {first} and {second}, as shares of those of the task's own program: less is better."
    if upward := [word_figure(shown.name) for shown in drawn[0].objectives[:2] if not shown.is_less_better]:
        caption += f" Of {' and '.join(upward)} more is better: the share is the own program's by the program's."
    if len(drawn[0].names) > 2:
        caption += f" What no other beats counts {' and '.join(word_figure(name) for name in drawn[0].names[2:])} too."
    rows = [row for front in drawn for row in _list_points(front)]
    title = "Fronts: figures as times those of the task's own program (at 1), on log scales"
    spec = grid_chart(rows, title=title, x_title=first, y_title=second)
    return Figure("fronts", "Fronts", caption, spec)


def _list_points(front: TaskFront) -> Iterator[dict[str, Any]]:
    """Equal places once; what is drawn last lies above."""
    unbeaten = {front.scale_point(point)[:2] for point in front.front}
    beaten = {front.scale_point(point)[:2] for point in front.programs} - unbeaten
    for series, places in ((BEATEN, sorted(beaten)), (OWN, [(1.0, 1.0)]), (FRONT, sorted(unbeaten))):
        yield from ({"field": front.task, "x": x, "y": y, "series": series} for x, y in places)
