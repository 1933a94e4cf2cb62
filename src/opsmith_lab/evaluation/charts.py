"""Figures of results as plain data: what is kept beside the numbers, and drawn again without a run.

Data first, drawing second: an analysis makes charts, `files` keeps them, and `draw_chart` draws them in today's look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.errors import UsageError
from opsmith.report.figures import bar_chart, interval_chart, line_chart
from opsmith.report.rendering import Spec, annotate_figure

DRAWINGS: Mapping[str, Callable[..., Spec]] = {
    "bars": bar_chart,
    "lines": line_chart,
    "intervals": interval_chart,
}


@dataclass(frozen=True)
class Chart:
    """One figure before it is drawn."""

    drawing: str  # a name in DRAWINGS
    points: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)  # the drawing's other arguments; `title` is the finding
    lines: tuple[str, ...] = ()  # small, below the title: who made it, how many; of an analysis: what whiskers are over


def draw_chart(chart: Chart) -> Spec:
    """The figure in today's look. Raises UsageError for a chart that no drawing of this version knows."""
    drawing = DRAWINGS.get(chart.drawing)
    if drawing is None:
        raise UsageError(f"chart: given the drawing {chart.drawing!r}; expected one of {', '.join(DRAWINGS)}")
    try:
        return annotate_figure(drawing(chart.points, **chart.options), chart.lines)
    except (TypeError, KeyError) as error:
        raise UsageError(f"chart of the drawing {chart.drawing!r}: {error}; try: run the experiment again") from None


def read_chart(data: Any) -> Chart:
    """A chart as JSON has it. Raises UsageError."""
    if not isinstance(data, dict) or {"drawing", "points", "options", "lines"} != data.keys():
        raise UsageError("chart: expected drawing, points, options and lines; try: run the experiment again")
    return Chart(data["drawing"], data["points"], data["options"], tuple(data["lines"]))
