"""Bars: values drawn side by side with their intervals; rows without a value have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opsmith.evaluation.analysis import Row, shorten_model
from opsmith.evaluation.study import Study
from opsmith.report.figures import Spec, bar_chart

Name = Callable[[Row], str]


def draw_bars(
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
            "y": row.estimate.value,
            "low": row.estimate.low,
            "high": row.estimate.high,
        }
        for row in rows
        if row.estimate
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


def make_namer(study: Study) -> Name:
    """The arm's name, with its model's where there are several models."""
    has_one_series = len(study.series_names) == 1
    return lambda row: row.arm if has_one_series else f"{shorten_model(row.model)}, {row.arm}"
