"""How much better right programs become in each arm, and how much more than in one of them (the ablations of KForge).

A gain is the start program's figure by that of the run's best program, measured in the full grade; where no difference
was shown, or nothing could be measured, it counts as 1. Arms are compared pair by pair: the same task, the same seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from opsmith.models.roles import shorten_model
from opsmith.results.optimisation import OptimisedRun, OptimisedTask, read_optimisation
from opsmith.results.states import AttemptState
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    format_estimate,
    format_number,
    list_points,
)
from opsmith_lab.evaluation.charts import Chart
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
    rows = [row for cell in cells for row in _list_rows(study, cells, *cell)]
    finding = _write_headline(study, rows, cells)
    return Analysis(
        finding,
        tuple(rows),
        (_tabulate_arms(study, rows, cells), _tabulate_tasks(study, cells)),
        {"": _draw_figure(study, rows, finding)},
        tuple(_write_notes(study)),
        INTERVALS,
    )


def _read_run(study: Study, run: ObservedRun) -> _ArmRun:
    """A task without a step (the run had nothing to begin with) has gained nothing."""
    optimised = read_optimisation(study.store, run.result.run)
    tasks = {} if optimised is None else {task.task: task for task in optimised.tasks}
    gains = {task.id: _read_gain(tasks.get(task.id)) for task in study.tasks}
    return _ArmRun(run, gains, _share_correct(optimised))


def _read_gain(task: OptimisedTask | None) -> float:
    return 1.0 if task is None or task.best is None or task.published is None else task.published


def _share_correct(optimised: OptimisedRun | None) -> dict[str, float]:
    """By task, of those with a judged attempt."""
    tasks = () if optimised is None else optimised.tasks
    states = {task.task: [step.state for step in task.steps if step.state is not None] for task in tasks}
    return {task: of_task.count(AttemptState.CORRECT) / len(of_task) for task, of_task in states.items() if of_task}


# -- estimates


def _list_rows(study: Study, cells: _Cells, series: str, arm: str) -> list[Row]:
    runs, base = cells[series, arm], study.experiment.relative_to
    gains = [run.gains for run in runs]
    attempts = sum(run.observed.judged for run in runs)
    estimates = {GAIN: average_tasks(gains, is_geometric=True)}
    if base and arm != base and (series, base) in cells:
        estimates[MORE] = compare_gains(gains, [run.gains for run in cells[series, base]])
    estimates[RIGHT] = average_tasks([run.correct for run in runs])
    estimates |= {name: share_marks([_mark_fast(run, p) for run in gains]) for name, p in FAST.items()}
    counted = {name: estimate and replace(estimate, samples=attempts) for name, estimate in estimates.items()}
    return [Row(series, arm, name, ALL, estimate) for name, estimate in counted.items()]


def _mark_fast(gains: Gains, threshold: float) -> dict[str, float]:
    return {task: float(gain >= threshold) for task, gain in gains.items()}


def compare_gains(seeds: Sequence[Gains], base: Sequence[Gains]) -> MeanEstimate | None:
    """The geometric mean of gain by the base's gain, of the seeds and tasks that both have.

    >>> compare_gains([{"a": 4.0, "b": 2.0}], [{"a": 2.0, "c": 8.0}]).value
    2.0
    """
    pairs = zip(seeds, base, strict=False)
    return average_tasks(
        [{task: own[task] / control[task] for task in own if task in control} for own, control in pairs], True
    )


# -- what is shown


def _tabulate_arms(study: Study, rows: Sequence[Row], cells: _Cells) -> Grid:
    names = [GAIN, *([MORE] if study.experiment.relative_to else []), RIGHT, *FAST]
    columns = ("model", "arm", *(name.replace("base", study.experiment.relative_to) for name in names))
    lines = [_format_arm(study, rows, names, cells[cell], *cell) for cell in cells]
    spent = ("seeds", "judged attempts", "tokens a run", "measured s", "USD")
    return Grid("By arm", (*columns, *spent), tuple(lines))


def _format_arm(
    study: Study, rows: Sequence[Row], names: Sequence[str], runs: Sequence[_ArmRun], series: str, arm: str
) -> tuple[str, ...]:
    own = {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}
    values = [format_estimate(own[name].estimate) if name in own else "1" for name in names]
    average = partial(study.average_number, series, arm)
    tokens = average(lambda run: float(run.usage.input_tokens + run.usage.output_tokens))
    measured, dollars = average(partial(_sum_measured, study)), average(lambda run: run.usage.cost_usd)
    cost = "unknown" if dollars is None else format_number(dollars, ",.2f")
    attempts = format_number(float(sum(run.observed.judged for run in runs)))
    spent = (str(len(runs)), attempts, format_number(tokens), format_number(measured), cost)
    return (shorten_model(series), arm, *values, *spent)


def _sum_measured(study: Study, run: ObservedRun) -> float | None:
    optimised = read_optimisation(study.store, run.result.run)
    return None if optimised is None else optimised.measured_seconds


def _tabulate_tasks(study: Study, cells: _Cells) -> Grid:
    """The gain of every task in every arm, so that a mean hides nothing."""
    lines = []
    for task in study.tasks:
        estimates = [average_tasks([{task.id: run.gains[task.id]} for run in runs], True) for runs in cells.values()]
        lines.append((task.id, *(format_number(e.value, ".2f") if e else "-" for e in estimates)))
    has_one_series = len(study.series_names) == 1
    names = [arm if has_one_series else f"{shorten_model(series)}, {arm}" for series, arm in cells]
    return Grid("Gain by task, geometric mean over seeds", ("task", *names), tuple(lines))


def _draw_figure(study: Study, rows: Sequence[Row], finding: str) -> Chart:
    options = {"x": "arm", "y": "y", "series": "model", "low": "low", "high": "high", "reference": 1.0}
    words = {"title": finding, "x_title": "arm", "y_title": "gain, geometric mean (1: no better)"}
    return Chart("intervals", tuple(list_points(rows, GAIN)), {**options, **words}, ("over tasks and seeds",))


def _write_headline(study: Study, rows: Sequence[Row], cells: _Cells) -> str:
    """The gain of each arm, and how many times that of the base it is."""
    if {gain for runs in cells.values() for run in runs for gain in run.gains.values()} == {1.0}:
        return "no arm made a program better: every gain is 1"
    words = ", ".join(f"{row.arm} {row.estimate:.2f}" for row in rows if row.measure == GAIN and row.estimate)
    compared = [row for row in rows if row.measure == MORE and row.estimate]
    times = ", ".join(f"{row.arm} {row.estimate:.2f}" for row in compared if row.estimate)
    return f"gain: {words}" + (f"; by that of {study.experiment.relative_to}: {times}" if compared else "")


def _write_notes(study: Study) -> list[str]:
    notes = [
        "gain: the start program's figure by that of the run's best program, in the full grade, at all timed sizes; it "
        "is 1 where no difference was shown, or nothing could be measured",
        "fast_p: the share of tasks whose gain is p or more",
    ]
    base = study.experiment.relative_to
    return [*notes, f"gain over {base}: of the same task and seed, geometric mean"] if base else notes
