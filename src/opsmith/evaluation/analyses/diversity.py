"""How different are the answers, and does that go with performance? (Table 1.)

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

from opsmith.evaluation import measure
from opsmith.evaluation.bars import arm_in, bars
from opsmith.evaluation.found import Analysis, Grid, Row, measured, short, stated
from opsmith.evaluation.measure import Drawn
from opsmith.evaluation.study import ALL, Observed, Study
from opsmith.report.figures import Spec
from opsmith.verification.verifier import canonical

MEASURES = ("success diversity", "failure diversity", "overall diversity")
RESAMPLES = 500
Classes = Mapping[str, Counter[tuple[str, bool]]]  # by task: samples by (syntax tree, right)


def diversity(study: Study) -> Analysis:
    """The three diversities and pass@n, by arm and model."""
    cells = [(series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    rows = [row for series, arm in cells for row in _rows(study, series, arm)]
    columns = ("model", "arm", "measure", "value", "paper")
    lines = tuple((short(r.model), r.arm, r.measure, measured(r.found), stated(r.paper)) for r in rows)
    overall = [row for row in rows if row.measure in ("overall diversity", "pass@n") and row.found]
    headline = "; ".join(f"{short(row.model)}, {row.arm}: {row.measure} {row.found}" for row in overall)
    notes = ("intervals of diversities: the spread of redrawn samples around the value, which redrawing itself lowers",)
    return Analysis(headline, tuple(rows), (Grid("Diversity", columns, lines),), {"": _figure(study, rows)}, notes)


def _rows(study: Study, series: str, arm: str) -> list[Row]:
    cell = study.cell(series, arm)
    found = [_seed(study, item) for item in cell]
    rows = [
        Row(series, arm, name, ALL, measure.over_seeds([part[at] for part in found]), study.paper(name, arm, series))
        for at, name in enumerate(MEASURES)
    ]
    share = study.pass_at_n(series, arm, study.groups[ALL])
    return [*rows, Row(series, arm, "pass@n", ALL, share, study.paper("pass@n", arm, series))]


def _seed(study: Study, item: Observed) -> list[Drawn | None]:
    """The three diversities of one run."""
    classes = _classes(study, item)
    rng = np.random.default_rng(item.draw)
    wanted = [lambda right: right, lambda right: not right, lambda right: True]
    redrawn = {task: _redrawn(counts, rng) for task, counts in classes.items()}
    return [_drawn(classes, redrawn, kind) for kind in wanted]


def _classes(study: Study, item: Observed) -> Classes:
    tasks = {task.id: task for task in study.tasks}
    names: dict[tuple[str, str], str] = {}
    found: dict[str, Counter[tuple[str, bool]]] = {}
    for task, program, passed in study.store.programs(item.result.run):
        if (task, program) not in names:
            names[task, program] = canonical(tasks[task], program)
        found.setdefault(task, Counter())[names[task, program], passed] += 1
    return found


def _redrawn(counts: Counter[tuple[str, bool]], rng: np.random.Generator) -> NDArray[np.int64]:
    """As many samples drawn again: [resamples, classes]."""
    sizes = np.array(list(counts.values()))
    return rng.multinomial(sizes.sum(), sizes / sizes.sum(), size=RESAMPLES)


def _drawn(classes: Classes, redrawn: Mapping[str, NDArray[np.int64]], kind: Any) -> Drawn | None:
    values: list[float] = []
    parts: list[NDArray[np.float64]] = []
    samples = 0
    for task, counts in classes.items():
        chosen = [at for at, (_, right) in enumerate(counts) if kind(right)]
        total = sum(size for (_, right), size in counts.items() if kind(right))
        if total:
            values.append(len(chosen) / total)
            parts.append(_ratios(redrawn[task][:, chosen]))
            samples += total
    if not values:
        return None
    value = float(np.mean(values))
    again = np.nanmean(np.array(parts), axis=0)  # a redrawn task without such an answer is no part of its mean
    centred = np.clip(again - np.nanmean(again) + value, 0.0, 1.0)
    return Drawn(value, np.where(np.isnan(centred), value, centred), len(values), samples)


def _ratios(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Different over all, by resample; not a number where there is none."""
    total = counts.sum(axis=1)
    return np.where(total > 0, (counts > 0).sum(axis=1) / np.maximum(total, 1), np.nan)


def _figure(study: Study, rows: Sequence[Row]) -> Spec:
    name = arm_in(study)
    return bars(study, rows, x=name, series=lambda row: row.measure, x_title="arm", y_title="diversity, Pass@n")
