"""How does a run learn, round by round, against the input tokens it needs? (Figures 7 and 11.)

A point is a round: the share of tasks solved by its end, against the least necessary input tokens averaged over tasks.
Those are the tokens of one prompt of a task in the round that solved it, or in its last one so far: a solved task needs
no longer prompt, so that a curve may turn back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.evaluation import measure
from opsmith.evaluation.found import Analysis, Grid, Row, measured, number, short
from opsmith.evaluation.measure import Measured
from opsmith.evaluation.study import ALL, Observed, Study
from opsmith.learn.metrics import mean
from opsmith.learn.result import RoundResult
from opsmith.report.figures import line_chart

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Point:
    """One round of one run."""

    label: str  # 9: HME₅
    level: str
    tokens: float | None  # input, of one prompt, mean over the tasks
    solved: int
    found: Measured | None
    pareto: bool = False  # no other round of the run solves as much with fewer tokens


def curves(study: Study) -> Analysis:
    """Every round of every run, the Pareto points marked."""
    found = [(item, points(item, study.groups[ALL])) for item in study.observed]
    rows = [Row(o.series, o.arm.name, "pass@n", f"seed {o.seed}, {p.label}", p.found) for o, ps in found for p in ps]
    grids = tuple(_grid(item, its) for item, its in found)
    figures = {_suffix(study, series): _figure(study, series, found) for series in study.series}
    notes = ("filled points are the Pareto points; the lines join points by their tokens, the labels tell the order",)
    return Analysis(_headline(found), tuple(rows), grids, figures, notes)


def points(item: Observed, tasks: Sequence[str]) -> tuple[Point, ...]:
    """The rounds of a run that have ended, in order."""
    found = [_point(item, tasks, one) for one in item.result.rounds]
    best = pareto([(point.tokens, point.solved) for point in found])
    return tuple(Point(p.label, p.level, p.tokens, p.solved, p.found, at in best) for at, p in enumerate(found))


def pareto(places: Sequence[tuple[float | None, int]]) -> set[int]:
    """The positions that no other beats: as many solved with fewer tokens, or more with as few; of equals the first.

    >>> sorted(pareto([(10, 1), (20, 1), (15, 3), (30, 4), (30, 4)]))
    [0, 2, 3]
    """
    kept: set[int] = set()
    most = -1
    known = [(tokens, -solved, at) for at, (tokens, solved) in enumerate(places) if tokens is not None]
    for _, less, at in sorted(known):
        if -less > most:
            kept.add(at)
            most = -less
    return kept


def label(number: int, level: str, cycle: int) -> str:
    """
    >>> label(9, "HME", 5), label(0, "none", 0)
    ('9: HME₅', 'None')
    """
    return "None" if level == "none" and not cycle else f"{number}: {level}{str(cycle).translate(SUBSCRIPTS)}"


def _point(item: Observed, tasks: Sequence[str], one: RoundResult) -> Point:
    shown = [tokens for task in tasks if (tokens := _tokens(item, task, one.round)) is not None]
    drawn = measure.drawn(item.counts(tasks, best=False, last=one.round), measure.solved, item.draw)
    name = label(one.round, one.level, one.cycle)
    return Point(name, one.level, mean(shown), one.cumulative, measure.over_seeds([drawn]))


def _tokens(item: Observed, task: str, last: int) -> float | None:
    """Of one prompt of the task in its last round up to this one; a solved task is asked no more."""
    tried = [number for number, found in item.tokens.items() if number <= last and task in found]
    return float(item.tokens[max(tried)][task]) if tried else None


def _grid(item: Observed, its: Sequence[Point]) -> Grid:
    lines = tuple(
        (p.label, number(p.tokens), str(p.solved), measured(p.found), "Pareto" if p.pareto else "") for p in its
    )
    columns = ("round", "input tokens, mean over tasks", "tasks solved", "pass@n", "")
    return Grid(f"{short(item.series)}, {item.arm.name}, seed {item.seed}", columns, lines)


def _suffix(study: Study, series: str) -> str:
    """Nothing for the first model; the others' figures are numbered."""
    at = study.series.index(series)
    return f"-{at + 1}" if at else ""


def _figure(study: Study, series: str, found: Sequence[tuple[Observed, tuple[Point, ...]]]) -> dict[str, Any]:
    own = [(item, its) for item, its in found if item.series == series]
    drawn = [
        {
            "x": point.tokens,
            "y": point.found.value if point.found else None,
            "label": point.label if item is own[0][0] else "",  # the labels of several runs would cover each other
            "pareto": point.pareto,
            "who": f"{item.arm.name}, seed {item.seed}",
        }
        for item, its in own
        for point in its
    ]
    return line_chart(
        drawn,
        x="x",
        y="y",
        series="who",
        label="label",
        mark="pareto",
        title=f"{study.experiment.title}: {short(series)}",
        x_title="input tokens, mean over tasks",
        y_title="Pass@n",
        width=560,
    )


def _headline(found: Sequence[tuple[Observed, tuple[Point, ...]]]) -> str:
    every = [p for _, its in found for p in its if p.pareto and p.level != "none"]
    hard = sum(p.level == "H" for p in every)
    ends = "; ".join(
        f"{short(o.series)}, seed {o.seed}: pass@n {its[0].found} to {its[-1].found}" for o, its in found if its
    )
    return f"{hard} of {len(every)} Pareto points with demonstrations show hard ones only; {ends}"
