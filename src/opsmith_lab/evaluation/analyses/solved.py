"""How many tasks each arm solves, and how many more than one of them, pair by pair: the same task, the same seed.

A task is solved where a program for the whole of it passed; the parts that a plan splits it into count as samples and
not as tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    format_means,
    list_points,
    map_measures,
    select_estimates,
)
from opsmith_lab.evaluation.bars import make_namer
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.measure import MeanEstimate, share_marks, subtract_marks
from opsmith_lab.evaluation.study import ALL, Study

SOLVED, MORE = "solved", "solved more than base"
INTERVALS = (
    "Values are numbers of tasks, means over seeds, the value of each seed in parentheses. Brackets hold 95 % "
    "intervals: of tasks solved over tasks (Wilson's), of differences over tasks and seeds, which are drawn anew, the "
    "same ones for both arms; there is none for fewer than 5 tasks."
)


def analyse_solved(study: Study) -> Analysis:
    """Tasks solved, tasks more than `relative_to`, samples and tokens of every arm; and every task in every arm."""
    rows = [row for cell in study.cells for row in _list_rows(study, *cell)]
    base = study.experiment.relative_to
    notes = [f"{MORE.replace('base', base)}: of the same task and seed, by task"] if base else []
    finding = _write_headline(study, rows)
    return Analysis(
        finding,
        rows,
        (_tabulate_arms(study, rows), _tabulate_tasks(study)),
        {"": _draw_figure(study, rows, finding)},
        notes,
        INTERVALS,
    )


def count_tasks(share: MeanEstimate | None) -> MeanEstimate | None:
    """A share of the tasks, or a difference of shares, as their number."""
    if share is None:
        return None
    value, low, high = (None if end is None else share.tasks * end for end in (share.value, share.low, share.high))
    return replace(share, value=value or 0.0, low=low, high=high, seeds=tuple(share.tasks * own for own in share.seeds))


def _list_rows(study: Study, series: str, arm: str) -> list[Row]:
    tasks, base = study.tasks_by_group[ALL], study.experiment.relative_to
    runs, controls = study.select_runs(series, arm), study.select_runs(series, base)
    marks = [run.mark_solved(tasks) for run in runs]
    estimates = {SOLVED: count_tasks(share_marks(marks))}
    if controls and arm != base:
        estimates[MORE] = count_tasks(subtract_marks(marks, [run.mark_solved(tasks) for run in controls]))
    samples = sum(run.judged for run in runs)
    return [
        Row(series, arm, name, ALL, estimate and replace(estimate, samples=samples))
        for name, estimate in estimates.items()
    ]


def format_count(estimate: MeanEstimate | None) -> str:
    """`22.7 [20.0, 24.7] (23, 22, 23)`."""
    if estimate is None:
        return "-"
    seeds = ", ".join(f"{value:g}" for value in estimate.seeds)
    return f"{estimate:.1f}" + (f" ({seeds})" if len(estimate.seeds) > 1 else "")


def _tabulate_arms(study: Study, rows: Sequence[Row]) -> Grid:
    base = study.experiment.relative_to
    names = [f"solved of {len(study.tasks)}", *([MORE.replace("base", base)] if base else [])]
    spent = ("seeds", "judged samples a run", "input tokens", "output tokens", "of those reasoning", "USD")
    lines = [_format_arm(study, rows, *cell) for cell in study.cells]
    return Grid("By arm", ("model", "arm", *names, *spent), lines)


def _format_arm(study: Study, rows: Sequence[Row], series: str, arm: str) -> tuple[str, ...]:
    own = map_measures(rows, series, arm)
    names = [SOLVED, *([MORE] if study.experiment.relative_to else [])]
    values = [format_count(own[name].estimate) if name in own else "0" for name in names]
    spent = format_means(
        study,
        series,
        arm,
        lambda run: float(run.judged),
        lambda run: float(run.usage.input_tokens),
        lambda run: float(run.usage.output_tokens),
        lambda run: float(run.usage.reasoning_tokens),
    )
    return (shorten_model(series), arm, *values, str(len(study.select_runs(series, arm))), *spent)


def _tabulate_tasks(study: Study) -> Grid:
    """In how many seeds each arm solved each task, so that a number hides nothing."""
    tasks = study.tasks_by_group[ALL]
    marks = {cell: [run.mark_solved(tasks) for run in study.select_runs(*cell)] for cell in study.cells}
    lines = [
        (task, *(f"{sum(seed[task] for seed in seeds):g} of {len(seeds)}" for seeds in marks.values()))
        for task in tasks
    ]
    names = [study.name_cell(*cell) for cell in study.cells]
    return Grid("Seeds in which a task was solved", ("task", *names), lines)


def _draw_figure(study: Study, rows: Sequence[Row], finding: str) -> Chart:
    options = {"x": "arm", "y": "y", "series": "model", "low": "low", "high": "high"}
    words = {"title": finding, "x_title": "arm", "y_title": f"tasks solved of {len(study.tasks)}"}
    limits = {"y_domain": [0, len(study.tasks)]}
    return Chart("bars", list_points(rows, SOLVED), {**options, **words, **limits}, ("over tasks",))


def _write_headline(study: Study, rows: Sequence[Row]) -> str:
    name = make_namer(study)
    counts = [f"{name(row)} {estimate.value:.3g}" for row, estimate in select_estimates(rows, SOLVED)]
    differences = [f"{name(row)} {estimate:.1f}" for row, estimate in select_estimates(rows, MORE)]
    beside = f"; more than {study.experiment.relative_to}: {', '.join(differences)}" if differences else ""
    return f"tasks solved of {len(study.tasks)}: {', '.join(counts)}{beside}"
