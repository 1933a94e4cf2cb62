"""How different the answers are, and whether that goes with performance (table 1).

Diversity is the number of answers with different syntax trees over the number of answers, averaged over the tasks that
have any: of right answers, of wrong ones, of all. Samples drawn again from those at hand repeat themselves, so their
diversity is lower throughout; an interval therefore has the width of the redrawn values' and stands around the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from opsmith.judging.verifier import canonical_source
from opsmith.results.intervals import bound_redrawn
from opsmith_lab.evaluation.analyses.shares import make_share_row
from opsmith_lab.evaluation.analysis import Analysis, Row, say_arms, select_estimates, tabulate_rows
from opsmith_lab.evaluation.charts import chart_bars
from opsmith_lab.evaluation.measure import MeanEstimate
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

MEASURES = ("success diversity", "failure diversity", "overall diversity")
RESAMPLES = 500
_Seed = tuple[float, NDArray[np.float64], int, int]  # a value, the redrawn ones, tasks, samples
Classes = Mapping[str, Counter[tuple[str, bool]]]  # by task: samples by (syntax tree, right)
Redrawn = Mapping[str, NDArray[np.int64]]  # by task: samples drawn again, [resamples, classes]


def analyse_diversity(study: Study) -> Analysis:
    """The three diversities and pass@n, by arm and model."""
    rows = [row for cell in study.cells for row in _list_rows(study, *cell)]
    diversities = say_arms(study, rows, "overall diversity", lambda own: f"{own.value:.3f}")
    shares = ", ".join(f"{estimate.value:.3f}" for _, estimate in select_estimates(rows, "pass@n"))
    finding = f"overall diversity: {diversities}; pass@n: {shares}"
    chart = chart_bars(
        study,
        rows,
        x=lambda row: study.name_cell(row.model, row.arm),
        series=lambda row: row.measure,
        title=finding,
        x_title="arm",
        y_title="share: of different answers, of tasks",
    )
    notes = ("intervals of diversities: the spread of redrawn samples around the value, which redrawing itself lowers",)
    return Analysis(finding, rows, (tabulate_rows("Diversity", rows),), {"": chart}, notes)


def _list_rows(study: Study, series: str, arm: str) -> Iterator[Row]:
    kinds = (lambda right: right, lambda right: not right, lambda right: True)
    seeds = [_count_classes(study, run) for run in study.select_runs(series, arm)]
    for name, kind in zip(MEASURES, kinds, strict=True):
        estimate = _average_seeds([_draw_diversity(*classes, kind) for classes in seeds])
        yield Row(series, arm, name, ALL, estimate, study.find_paper(name, arm, series))
    yield make_share_row(study, "pass@n", series, arm)


def _count_classes(study: Study, run: ObservedRun) -> tuple[Classes, Redrawn]:
    """The samples of one run by class, and as many drawn again."""
    tasks = {task.id: task for task in study.tasks}
    names: dict[tuple[str, str], str] = {}
    classes: dict[str, Counter[tuple[str, bool]]] = {}
    for task, program, passed in study.store.read_programs(run.result.run):
        if (task, program) not in names:
            names[task, program] = canonical_source(tasks[task], program)
        classes.setdefault(task, Counter())[names[task, program], passed] += 1
    rng = np.random.default_rng(run.draw_seed)
    sizes = {task: np.array(list(counts.values())) for task, counts in classes.items()}
    redrawn = {task: rng.multinomial(own.sum(), own / own.sum(), size=RESAMPLES) for task, own in sizes.items()}
    return classes, redrawn


def _draw_diversity(classes: Classes, redrawn: Redrawn, kind: Callable[[bool], bool]) -> _Seed | None:
    values: list[float] = []
    ratios: list[NDArray[np.float64]] = []
    samples = 0
    for task, counts in classes.items():
        chosen = [i for i, (_, right) in enumerate(counts) if kind(right)]
        total = sum(size for (_, right), size in counts.items() if kind(right))
        if total:
            values.append(len(chosen) / total)
            again = redrawn[task][:, chosen]
            sums = again.sum(axis=1)  # different over all, by resample; not a number where there is none
            ratios.append(np.where(sums > 0, (again > 0).sum(axis=1) / np.maximum(sums, 1), np.nan))
            samples += total
    if not values:
        return None
    value = float(np.mean(values))
    means = np.nanmean(np.array(ratios), axis=0)  # a redrawn task without such an answer is no part of its mean
    centred = np.clip(means - np.nanmean(means) + value, 0.0, 1.0)
    return value, np.where(np.isnan(centred), value, centred), len(values), samples


def _average_seeds(seeds: Sequence[_Seed | None]) -> MeanEstimate | None:
    """None when a seed has no value."""
    present = [seed for seed in seeds if seed is not None]
    if not present or len(present) < len(seeds):
        return None
    own, redrawn, tasks, samples = zip(*present, strict=True)
    bounds = bound_redrawn(sum(own) / len(own), np.mean(redrawn, axis=0), sum(samples))
    return MeanEstimate(*bounds, tasks=tasks[0], samples=sum(samples), seeds=own)
