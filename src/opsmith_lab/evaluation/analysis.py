"""What came of an experiment as records: estimates, from which tables, headlines, figures and files are written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, USD, DataTable, Said, Value
from opsmith_lab.evaluation.experiment import Paper
from opsmith_lab.evaluation.measure import MeanEstimate
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

Number = Callable[[ObservedRun], float | None]
_FORMS = {COUNT: ".1f"}


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

    @property
    def said_paper(self) -> str:
        """`0.62 (claude-3-5-sonnet-20241022, Table 1)`."""
        places = ((value, filter(None, (shorten_model(paper.model), paper.place))) for value, paper in self.paper)
        return "; ".join(f"{value:.3g} ({', '.join(place)})" for value, place in places)


Namer = Callable[[Row], str]


@dataclass(frozen=True)
class Chart:
    """One figure before it is drawn."""

    drawing: str  # a name in `charts.DRAWINGS`
    points: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)  # the drawing's other arguments; `title` is the finding
    lines: tuple[
        str, ...
    ] = ()  # small, below the title: who made it, how many; of an analysis: what whiskers are over,
    # and how much stands behind it where that is less than the page


@dataclass(frozen=True)
class Analysis:
    """What an analysis makes of a study."""

    headline: str  # the result in a short sentence
    rows: Sequence[Row]
    tables: Sequence[DataTable]
    figures: Mapping[str, Chart] = field(default_factory=dict)  # by what is added to the file's name
    notes: Sequence[str] = ()  # what a reader must know of how it was computed
    intervals: str = ""  # what values and brackets are, where they are not those of `page.INTERVALS`


@dataclass(frozen=True)
class ExperimentReport:
    """What the files of an experiment say beside its analysis, whatever it ran."""

    name: str
    title: str
    shows: str
    size: str  # `26 tasks, 12,864 judged samples; seeds 0, 1, 2`
    models: Sequence[str]
    seeds: Sequence[int]
    tasks: Sequence[str]
    samples: int
    mark: str = ""  # what is said of results that are no language model's
    not_language_models: Collection[str] = ()  # of `models`
    stopped: str = ""  # why it is not complete
    notes: Sequence[str] = ()
    settings: Sequence[str] = ()
    runs: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[DataTable] = ()  # of runs, for people
    paper: Sequence[DataTable] = ()


def select_estimates(rows: Iterable[Row], measure: str, of: str = ALL) -> list[tuple[Row, MeanEstimate]]:
    """The rows of one measure that could be measured, each with its estimate."""
    return [(row, row.estimate) for row in rows if (row.measure, row.of) == (measure, of) and row.estimate]


def say_estimate(estimate: MeanEstimate | None, unit: str = SHARE) -> Said | None:
    """`0.615 [0.538, 0.654]`, and the seeds' values where there are several."""
    if estimate is None:
        return None
    seeds = ", ".join(f"{value:.3g}" for value in estimate.seeds)
    return Said(format(estimate, _FORMS.get(unit, "")) + f" ({seeds})" * (len(estimate.seeds) > 1), estimate)


def say_arms(
    study: Study, rows: Iterable[Row], measure: str, write: Callable[[MeanEstimate], str], of: str = ALL
) -> str:
    """`single 21, adaptive 23`: every arm that could be measured; none is chosen for its result."""
    own = select_estimates(rows, measure, of)
    return ", ".join(f"{study.name_cell(row.model, row.arm)} {write(estimate)}" for row, estimate in own)


def say_solved(study: Study, rows: Iterable[Row]) -> str:
    """The tasks that each arm solves; of several seeds their mean."""
    return f"tasks solved of {len(study.tasks)}: {say_arms(study, rows, 'pass@n', count_solved)}"


def count_solved(estimate: MeanEstimate) -> str:
    """A share of the tasks as their number: `23`, or `22.7` where seeds differ."""
    return f"{round(estimate.value * estimate.tasks, 1):g}"


def tabulate_rows(title: str, rows: Sequence[Row], of: str = "", sizes: Mapping[str, int] | None = None) -> DataTable:
    """A line for each estimate. `of`: what they are of, in a column; `sizes`: of it, how many tasks there are, in whose
    order the lines stand."""
    if sizes:
        order = list(sizes)
        rows = sorted(rows, key=lambda row: order.index(row.of))
    lines: list[list[Value]] = [
        [
            *([row.of] if of else []),
            shorten_model(row.model),
            row.arm,
            row.measure,
            say_estimate(row.estimate),
            *([_say_count(row, sizes[row.of])] if sizes else []),
            row.said_paper,
        ]
        for row in rows
    ]
    columns = {**({of: TEXT} if of else {}), "model": TEXT, "arm": TEXT, "measure": TEXT, "value": SHARE}
    return DataTable(title, {**columns, **({"solved": COUNT} if sizes else {}), "paper": TEXT}, lines)


def _say_count(row: Row, size: int) -> Said:
    """pass@n as the paper writes it: 7/8."""
    if row.measure != "pass@n" or row.estimate is None:
        return Said("")
    return Said(f"{row.estimate.value * size:.3g}/{size}", row.estimate.value * size)


def tabulate_arms(
    study: Study,
    rows: Sequence[Row],
    measures: Mapping[str, str],
    numbers: Mapping[str, Number],
    unit: str = SHARE,
    alike: str = "1",
    is_relative: bool = False,
) -> DataTable:
    """A line for each arm of a model: its estimates, what the paper says, then what its runs took, means over seeds.

    measures: by heading, the measure; `alike` stands where the arm that others are compared with has none.
    is_relative: with each number, how many times that of the arm `relative_to` it is.
    """
    base, lines = study.experiment.relative_to, list[list[Value]]()
    measures = {heading: name for heading, name in measures.items() if any(row.measure == name for row in rows)}
    for series, arm in study.cells:
        own = {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}
        values = [say_estimate(own[name].estimate, unit) if name in own else alike for name in measures.values()]
        paper = "; ".join(f"{name} {row.said_paper}" for name, row in own.items() if row.paper)
        means = [study.average_number(series, arm, number) for number in numbers.values()]
        control = [study.average_number(series, base, number) for number in numbers.values()] if is_relative else []
        ratios = [top / bottom if top and bottom else None for top, bottom in zip(means, control, strict=False)]
        cost = study.average_number(series, arm, lambda run: run.usage.cost_usd)
        seeds = len(study.select_runs(series, arm))
        lines.append([shorten_model(series), arm, *values, paper, seeds, *means, *ratios, cost])
    columns = {"model": TEXT, "arm": TEXT, **dict.fromkeys(measures, unit), "paper": TEXT, "seeds": COUNT}
    columns |= dict.fromkeys(numbers, COUNT)
    columns |= {f"{name}, times {base}": RATIO for name in numbers} if is_relative else {}
    return DataTable("By arm", {**columns, "USD": USD}, lines)
