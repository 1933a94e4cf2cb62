"""What came of an experiment: the result of an analysis as data: rows for machines, tables and figures for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.experiment import Paper
from opsmith_lab.evaluation.measure import MeanEstimate


@dataclass(frozen=True)
class Row:
    """One estimate, in long form."""

    model: str
    arm: str
    measure: str  # pass@1, pass@n ...
    of: str  # all, a group, a class, a point of a curve
    estimate: MeanEstimate | None  # None: could not be measured
    paper: tuple[tuple[float, Paper], ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Analysis:
    """What an analysis makes of a study."""

    headline: str  # the result in a short sentence
    rows: tuple[Row, ...]
    grids: tuple[Grid, ...]
    figures: Mapping[str, Chart] = field(default_factory=dict)  # by what is added to the file's name
    notes: tuple[str, ...] = ()  # what a reader must know of how it was computed
    intervals: str = ""  # what values and brackets are, where they are not those of `page.INTERVALS`


def format_estimate(estimate: MeanEstimate | None) -> str:
    """`0.615 [0.538, 0.654]`, and the seeds' values where there are several."""
    if estimate is None:
        return "-"
    seeds = ", ".join(f"{value:.3f}" for value in estimate.seeds)
    return f"{estimate}" + (f" ({seeds})" if len(estimate.seeds) > 1 else "")


def format_paper(paper: Sequence[tuple[float, Paper]]) -> str:
    """`0.62 (claude-3-5-sonnet-20241022, Table 1)`."""
    return "; ".join(
        f"{value:.3g} ({', '.join(filter(None, (shorten_model(p.model), p.place)))})" for value, p in paper
    )


def list_points(rows: Sequence[Row], measure: str) -> list[dict[str, str | float | None]]:
    """The estimates of one measure with their intervals, as a figure by arm and model draws them."""
    return [
        {"arm": row.arm, "model": shorten_model(row.model), "y": est.value, "low": est.low, "high": est.high}
        for row in rows
        if row.measure == measure and (est := row.estimate)
    ]


def count_solved(estimate: MeanEstimate) -> str:
    """A share of the tasks as their number: `23`, or `22.7` where seeds differ."""
    return f"{round(estimate.value * estimate.tasks, 1):g}"


def format_number(value: float | None, form: str = ",.0f") -> str:
    return "-" if value is None else format(value, form)
