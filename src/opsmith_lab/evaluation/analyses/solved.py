"""How many tasks each arm solves, and how many more than one of them, pair by pair: the same task, the same seed.

A task is solved where a program for the whole of it passed; the parts that a plan splits it into count as samples and
not as tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, TEXT, DataTable, Said, Value
from opsmith_lab.evaluation.analyses.shares import TOKENS
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row, say_arms, select_estimates, tabulate_arms
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
    base, size = study.experiment.relative_to, len(study.tasks)
    more = MORE.replace("base", base)
    differences = say_arms(study, rows, MORE, "{:.1f}".format)
    finding = f"tasks solved of {size}: {say_arms(study, rows, SOLVED, lambda own: f'{own.value:.3g}')}"
    finding += f"; more than {base}: {differences}" if differences else ""
    numbers = {"judged samples a run": lambda run: run.judged, **TOKENS}
    numbers |= {"of those reasoning": lambda run: run.usage.reasoning_tokens}
    measures = {f"solved of {size}": SOLVED, **({more: MORE} if base else {})}
    by_arm = tabulate_arms(study, rows, measures, numbers, COUNT, "0")
    options = {"title": finding, "x_title": "arm", "y_title": f"tasks solved of {size}", "y_domain": [0, size]}
    chart = Chart("bars", list_points(rows, SOLVED), options, ("over tasks",))
    notes = [f"{more}: of the same task and seed, by task"] if base else []
    return Analysis(finding, rows, (by_arm, _tabulate_tasks(study)), {"": chart}, notes, INTERVALS)


def list_points(rows: Sequence[Row], measure: str) -> list[dict[str, str | float | None]]:
    """The estimates of one measure with their intervals, as a figure by arm and model draws them."""
    own = (row for row, _ in select_estimates(rows, measure))
    return [{"x": row.arm, "series": shorten_model(row.model), **row.scale_ends()} for row in own]


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


def _tabulate_tasks(study: Study) -> DataTable:
    """In how many seeds each arm solved each task, so that a number hides nothing."""
    tasks = study.tasks_by_group[ALL]
    marks = {
        study.name_cell(*cell): [run.mark_solved(tasks) for run in study.select_runs(*cell)] for cell in study.cells
    }
    lines: list[Sequence[Value]] = []
    for task in tasks:
        counts = [(sum(seed[task] for seed in seeds), len(seeds)) for seeds in marks.values()]
        lines.append((task, *(Said(f"{solved:g} of {seeds}", solved) for solved, seeds in counts)))
    columns = {"task": TEXT, **dict.fromkeys(marks, COUNT)}
    return DataTable("Seeds in which a task was solved", columns, lines)
