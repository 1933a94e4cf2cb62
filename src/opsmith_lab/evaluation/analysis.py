"""What came of an experiment: the result of an analysis as data: rows for machines, tables and figures for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.experiment import Paper
from opsmith_lab.evaluation.measure import MeanEstimate
from opsmith_lab.evaluation.study import ObservedRun, Study


@dataclass(frozen=True)
class Row:
    """One estimate, in long form."""

    model: str
    arm: str
    measure: str  # pass@1, pass@n ...
    of: str  # all, a group, a class, a point of a curve
    estimate: MeanEstimate | None  # None: could not be measured
    paper: tuple[tuple[float, Paper], ...] = ()

    def scale_ends(self, size: float = 1) -> dict[str, float | None]:
        """The estimate with its interval, as figures take it; a share of `size` tasks as their number."""
        own = self.estimate
        ends = (own.value, own.low, own.high) if own is not None else (None, None, None)
        return {axis: None if end is None else end * size for axis, end in zip(("y", "low", "high"), ends, strict=True)}


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Analysis:
    """What an analysis makes of a study."""

    headline: str  # the result in a short sentence
    rows: Sequence[Row]
    grids: Sequence[Grid]
    figures: Mapping[str, Chart] = field(default_factory=dict)  # by what is added to the file's name
    notes: Sequence[str] = ()  # what a reader must know of how it was computed
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


def select_estimates(rows: Iterable[Row], measure: str) -> list[tuple[Row, MeanEstimate]]:
    """The rows of one measure that could be measured, each with its estimate."""
    return [(row, row.estimate) for row in rows if row.measure == measure and row.estimate]


def map_measures(rows: Iterable[Row], series: str, arm: str) -> dict[str, Row]:
    """The rows of one arm of a model, by measure."""
    return {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}


def list_points(rows: Iterable[Row], measure: str) -> list[Mapping[str, str | float | None]]:
    """The estimates of one measure with their intervals, as a figure by arm and model draws them."""
    own = select_estimates(rows, measure)
    return [{"arm": row.arm, "model": shorten_model(row.model), **row.scale_ends()} for row, _ in own]


def count_solved(estimate: MeanEstimate) -> str:
    """A share of the tasks as their number: `23`, or `22.7` where seeds differ."""
    return f"{round(estimate.value * estimate.tasks, 1):g}"


def format_number(value: float | None, form: str = ",.0f") -> str:
    return "-" if value is None else format(value, form)


def format_means(
    study: Study, series: str, arm: str, *numbers: Callable[[ObservedRun], float | None]
) -> tuple[str, ...]:
    """Numbers of an arm's runs, each as its mean over seeds; the last one is what they cost."""
    dollars = study.average_number(series, arm, lambda run: run.usage.cost_usd)
    means = (format_number(study.average_number(series, arm, number)) for number in numbers)
    return *means, "unknown" if dollars is None else format_number(dollars, ",.2f")
