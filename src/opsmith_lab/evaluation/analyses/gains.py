"""How much better right programs become in each arm, and how much more than in one of them (the ablations of KForge).

A gain is the start program's figure by that of the run's best program, measured in the full grade; where no difference
was shown, or nothing could be measured, it counts as 1. Arms are compared pair by pair: the same task, the same seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from opsmith.report.record import RATIO, TEXT, DataTable, Value
from opsmith.results.optimisation import read_optimisation
from opsmith.results.states import AttemptState
from opsmith_lab.evaluation.analyses.solved import list_points
from opsmith_lab.evaluation.analysis import Analysis, Chart, Number, Row, say_arms, tabulate_arms
from opsmith_lab.evaluation.measure import MeanEstimate, average_tasks, share_marks
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

GAIN, MORE, RIGHT = "gain", "gain over base", "correct share"
FAST = {f"fast_{threshold:g}": threshold for threshold in (1.1, 1.5, 2.0)}
INTERVALS = (
    "Values are means over tasks and seeds (geometric ones of gains), the value of each seed in parentheses. Brackets "
    "hold 95 % intervals: of fast_p over tasks (Wilson's), of all else over tasks and seeds, which are drawn anew, the "
    "same ones for both arms; there is none for fewer than 5 tasks. What measuring errs by stands in the runs."
)

Gains = Mapping[str, float]  # by task
_Cells = Mapping[tuple[str, str], Sequence["_ArmRun"]]  # by series and arm: one for each seed


@dataclass(frozen=True)
class _ArmRun:
    """One seed of an arm."""

    observed: ObservedRun
    gains: Gains
    correct: Mapping[str, float]  # share of right ones among the judged attempts, by task


def analyse_gains(study: Study) -> Analysis:
    """Gain, share of right attempts and fast_p of every arm, and its gain over that of `relative_to`."""
    cells = {cell: [_read_run(study, run) for run in study.select_runs(*cell)] for cell in study.cells}
    rows, base = [row for cell in cells for row in _list_rows(study, cells, *cell)], study.experiment.relative_to
    gains, times = (say_arms(study, rows, name, "{:.2f}".format) for name in (GAIN, MORE))
    finding = f"gain: {gains}" + (f"; by that of {base}: {times}" if times else "")
    if {gain for runs in cells.values() for run in runs for gain in run.gains.values()} == {1.0}:
        finding = "no arm made a program better: every gain is 1"
    measures = {name.replace("base", base): name for name in (GAIN, MORE, RIGHT, *FAST)}
    numbers: dict[str, Number] = {
        "judged attempts a run": lambda run: run.judged,
        "tokens a run": lambda run: run.usage.input_tokens + run.usage.output_tokens,
        "measured s": partial(_sum_measured, study),
    }
    tables = (tabulate_arms(study, rows, measures, numbers), _tabulate_tasks(study, cells))
    words = {"title": finding, "x_title": "arm", "y_title": "gain, geometric mean (1: no better)", "reference": 1.0}
    chart = Chart("intervals", list_points(rows, GAIN), words, ("over tasks and seeds",))
    notes = [
        "gain: the start program's figure by that of the run's best program, in the full grade, at all timed sizes; it "
        "is 1 where no difference was shown, or nothing could be measured",
        "fast_p: the share of tasks whose gain is p or more",
        *([f"gain over {base}: of the same task and seed, geometric mean"] if base else []),
    ]
    return Analysis(finding, rows, tables, {"": chart}, notes, INTERVALS)


def _read_run(study: Study, run: ObservedRun) -> _ArmRun:
    """A task without a step (the run had nothing to begin with) has gained nothing."""
    optimised = read_optimisation(study.store, run.result.run)
    tasks = () if optimised is None else optimised.tasks
    gains = {task.task: task.published for task in tasks if task.best is not None and task.published is not None}
    states = {task.task: [step.state for step in task.steps if step.state is not None] for task in tasks}
    correct = {name: own.count(AttemptState.CORRECT) / len(own) for name, own in states.items() if own}
    return _ArmRun(run, {task.id: gains.get(task.id, 1.0) for task in study.tasks}, correct)


def _list_rows(study: Study, cells: _Cells, series: str, arm: str) -> list[Row]:
    runs, base = cells[series, arm], study.experiment.relative_to
    gains = [run.gains for run in runs]
    attempts = sum(run.observed.judged for run in runs)
    estimates = {GAIN: average_tasks(gains, is_geometric=True)}
    if base and arm != base and (series, base) in cells:
        estimates[MORE] = compare_gains(gains, [run.gains for run in cells[series, base]])
    estimates[RIGHT] = average_tasks([run.correct for run in runs])
    for name, least in FAST.items():
        estimates[name] = share_marks([{task: float(gain >= least) for task, gain in run.items()} for run in gains])
    counted = {name: estimate and replace(estimate, samples=attempts) for name, estimate in estimates.items()}
    return [Row(series, arm, name, ALL, estimate) for name, estimate in counted.items()]


def compare_gains(seeds: Sequence[Gains], base: Sequence[Gains]) -> MeanEstimate | None:
    """The geometric mean of gain by the base's gain, of the seeds and tasks that both have.

    >>> compare_gains([{"a": 4.0, "b": 2.0}], [{"a": 2.0, "c": 8.0}]).value
    2.0
    """
    pairs = zip(seeds, base, strict=False)
    return average_tasks(
        [{task: own[task] / control[task] for task in own if task in control} for own, control in pairs], True
    )


def _sum_measured(study: Study, run: ObservedRun) -> float | None:
    optimised = read_optimisation(study.store, run.result.run)
    return None if optimised is None else optimised.measured_seconds


def _tabulate_tasks(study: Study, cells: _Cells) -> DataTable:
    """The gain of every task in every arm, so that a mean hides nothing."""
    lines: list[Sequence[Value]] = []
    for task in study.tasks:
        estimates = [average_tasks([{task.id: run.gains[task.id]} for run in runs], True) for runs in cells.values()]
        lines.append((task.id, *(own and own.value for own in estimates)))
    columns = {"task": TEXT, **dict.fromkeys((study.name_cell(*cell) for cell in cells), RATIO)}
    return DataTable("Gain by task, geometric mean over seeds", columns, lines)
