"""How different the answers are, and whether that goes with performance (table 1).

Diversity is the number of answers with different syntax trees over the number of answers, averaged over the tasks that
have any: of right answers, of wrong ones, of all. Samples drawn again from those at hand repeat themselves, so their
diversity is lower throughout; an interval therefore has the width of the redrawn values' and stands around the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opsmith.judging.verifier import canonical_source
from opsmith.models.roles import shorten_model
from opsmith.results.intervals import bound_redrawn
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    format_estimate,
    format_paper,
    select_estimates,
)
from opsmith_lab.evaluation.bars import chart_bars, make_namer, make_share_row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.measure import MeanEstimate
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

MEASURES = ("success diversity", "failure diversity", "overall diversity")
RESAMPLES = 500
_Seed = tuple[float, NDArray[np.float64], int, int]  # a value, the redrawn ones, tasks, samples
Classes = Mapping[str, Counter[tuple[str, bool]]]  # by task: samples by (syntax tree, right)


def analyse_diversity(study: Study) -> Analysis:
    """The three diversities and pass@n, by arm and model."""
    rows = [row for cell in study.cells for row in _make_rows(study, *cell)]
    columns = ("model", "arm", "measure", "value", "paper")
    lines = [
        (shorten_model(r.model), r.arm, r.measure, format_estimate(r.estimate), format_paper(r.paper)) for r in rows
    ]
    finding = _write_headline(study, rows)
    notes = ("intervals of diversities: the spread of redrawn samples around the value, which redrawing itself lowers",)
    grid = Grid("Diversity", columns, lines)
    return Analysis(finding, rows, (grid,), {"": _draw_figure(study, rows, finding)}, notes)


def _make_rows(study: Study, series: str, arm: str) -> list[Row]:
    statistics_by_seed = [_measure_seed(study, run) for run in study.select_runs(series, arm)]
    rows = [
        Row(
            series,
            arm,
            name,
            ALL,
            _average_seeds([statistics[position] for statistics in statistics_by_seed]),
            study.find_paper(name, arm, series),
        )
        for position, name in enumerate(MEASURES)
    ]
    return [*rows, make_share_row(study, "pass@n", series, arm)]


def _measure_seed(study: Study, run: ObservedRun) -> list[_Seed | None]:
    """The three diversities of one run."""
    classes = _count_classes(study, run)
    rng = np.random.default_rng(run.draw_seed)
    kinds = [lambda right: right, lambda right: not right, lambda right: True]
    redrawn = {task: _redraw_counts(counts, rng) for task, counts in classes.items()}
    return [_draw_diversity(classes, redrawn, kind) for kind in kinds]


def _count_classes(study: Study, run: ObservedRun) -> Classes:
    tasks = {task.id: task for task in study.tasks}
    names: dict[tuple[str, str], str] = {}
    counts_by_task: dict[str, Counter[tuple[str, bool]]] = {}
    for task, program, passed in study.store.read_programs(run.result.run):
        if (task, program) not in names:
            names[task, program] = canonical_source(tasks[task], program)
        counts_by_task.setdefault(task, Counter())[names[task, program], passed] += 1
    return counts_by_task


def _redraw_counts(counts: Counter[tuple[str, bool]], rng: np.random.Generator) -> NDArray[np.int64]:
    """As many samples drawn again: [resamples, classes]."""
    sizes = np.array(list(counts.values()))
    return rng.multinomial(sizes.sum(), sizes / sizes.sum(), size=RESAMPLES)


def _draw_diversity(classes: Classes, redrawn: Mapping[str, NDArray[np.int64]], kind: Any) -> _Seed | None:
    values: list[float] = []
    ratios: list[NDArray[np.float64]] = []
    samples = 0
    for task, counts in classes.items():
        chosen = [i for i, (_, right) in enumerate(counts) if kind(right)]
        total = sum(size for (_, right), size in counts.items() if kind(right))
        if total:
            values.append(len(chosen) / total)
            ratios.append(_divide_counts(redrawn[task][:, chosen]))
            samples += total
    if not values:
        return None
    value = float(np.mean(values))
    again = np.nanmean(np.array(ratios), axis=0)  # a redrawn task without such an answer is no part of its mean
    centred = np.clip(again - np.nanmean(again) + value, 0.0, 1.0)
    return value, np.where(np.isnan(centred), value, centred), len(values), samples


def _average_seeds(seeds: Sequence[_Seed | None]) -> MeanEstimate | None:
    """None when a seed has no value."""
    present = [seed for seed in seeds if seed is not None]
    if not present or len(present) < len(seeds):
        return None
    own, redrawn, tasks, samples = zip(*present, strict=True)
    bounds = bound_redrawn(sum(own) / len(own), np.mean(redrawn, axis=0), sum(samples))
    return MeanEstimate(*bounds, tasks=tasks[0], samples=sum(samples), seeds=own)


def _divide_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Different over all, by resample; not a number where there is none."""
    total = counts.sum(axis=1)
    return np.where(total > 0, (counts > 0).sum(axis=1) / np.maximum(total, 1), np.nan)


def _draw_figure(study: Study, rows: Sequence[Row], finding: str) -> Chart:
    upward = "share: of different answers, of tasks"
    return chart_bars(
        study, rows, x=make_namer(study), series=lambda row: row.measure, title=finding, x_title="arm", y_title=upward
    )


def _write_headline(study: Study, rows: Sequence[Row]) -> str:
    name = make_namer(study)
    overall = select_estimates(rows, "overall diversity")
    diversities = ", ".join(f"{name(row)} {estimate.value:.3f}" for row, estimate in overall)
    shares = ", ".join(f"{estimate.value:.3f}" for _, estimate in select_estimates(rows, "pass@n"))
    return f"overall diversity: {diversities}; pass@n: {shares}"
