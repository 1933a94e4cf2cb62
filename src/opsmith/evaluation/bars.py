"""How are values drawn side by side? As bars with their intervals; rows without a value have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opsmith.evaluation.found import Row, short
from opsmith.evaluation.study import Study
from opsmith.report.figures import Spec, bar_chart

Name = Callable[[Row], str]


def bars(
    study: Study,
    rows: Iterable[Row],
    *,
    x: Name,
    series: Name | None,
    x_title: str,
    y_title: str = "Pass@n",
    width: int = 540,
) -> Spec:
    """A bar for each row, at `x` and in the colour of `series`; shares from 0 to 1."""
    drawn = [
        {
            "x": x(row),
            "who": series(row) if series else "",
            "y": row.found.value,
            "low": row.found.low,
            "high": row.found.high,
        }
        for row in rows
        if row.found
    ]
    return bar_chart(
        drawn,
        x="x",
        y="y",
        low="low",
        high="high",
        series="who" if series else None,
        title=study.experiment.title,
        x_title=x_title,
        y_title=y_title,
        width=width,
        y_domain=(0.0, 1.0),
    )


def arm_in(study: Study) -> Name:
    """The arm's name, with its model's where there are several models."""
    one = len(study.series) == 1
    return lambda row: row.arm if one else f"{short(row.model)}, {row.arm}"
