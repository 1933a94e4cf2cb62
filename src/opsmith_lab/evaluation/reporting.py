"""What the files of an experiment of tasks say beside its analysis: size, settings, runs, what made it, the paper."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, SHARE, TEXT, USD, DataTable, Said, Value
from opsmith.results.settings_apart import write_setting
from opsmith_lab.evaluation.analysis import ExperimentReport
from opsmith_lab.evaluation.charts import describe_mark
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study


def report_study(study: Study) -> ExperimentReport:
    """An experiment as its files tell of it."""
    runs = [
        {
            "arm": o.arm.name,
            "model": o.result.model,
            "seed": o.seed,
            "run": o.result.run,
            "end": o.result.end,
            "solved": [task for task, mark in o.mark_solved(study.tasks_by_group[ALL]).items() if mark],
        }
        for o in study.observed
    ]
    seeds = sorted({run.seed for run in study.observed})
    words = f"{'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}"
    return ExperimentReport(
        study.experiment.name,
        study.experiment.title,
        study.experiment.shows,
        f"{len(study.tasks)} tasks, {study.judged:,} judged samples; {words}",
        study.series_names,
        seeds,
        [task.id for task in study.tasks],
        study.judged,
        describe_mark(study),
        {run.series for run in study.observed if not run.result.is_language_model},
        study.stopped,
        study.experiment.notes,
        tuple(_describe_settings(study)),
        runs,
        [DataTable("", _RUN, list(map(_list_cells, study.observed)))],
        [_tabulate_paper(study)],
    )


def _tabulate_paper(study: Study) -> DataTable:
    """All that the paper says in words and tables; what it shows in figures only is not read off them."""
    rows = [
        (statement.place, shorten_model(statement.model), statement.arm, statement.measure, of, Said(f"{value:.4g}"))
        for statement in study.experiment.paper
        for of, value in statement.values.items()
    ]
    columns = {**dict.fromkeys(("place", "model", "arm", "measure", "of"), TEXT), "value": SHARE}
    return DataTable("What the paper says, of its 26 tasks", columns, rows)


def _describe_settings(study: Study) -> Iterator[str]:
    """What the arms of a model have in common, from what its runs were made with."""
    for series in study.series_names:
        own = [run for run in study.observed if run.series == series]
        common = dict(own[0].settings.items())
        for run in own:
            common = {name: value for name, value in common.items() if run.settings.get(name) == value}
        values = ", ".join(f"{name} = {write_setting(common[name])}" for name in _SAID if name in common)
        yield f"{series}: {values}"


_SAID = (
    "samples", "temperatures", "levels", "agents", "guardian", "selection", "repair", "prompt", "max_rounds",
    "max_tokens", "noise", "optimise", "objective", "attempts", "beam", "fixes", "refine", "plateau", "analyst",
    "profiles", "memory", "example_pair", "reference", "plan", "planner", "plan_after", "splits", "depth", "tools",
    "reasoning", "think", "policy", "translate", "example",
)  # fmt: skip
_RUN = {
    **dict.fromkeys(("arm", "model", "seed", "run", "ended"), TEXT),
    **dict.fromkeys(("rounds", "solved", "requests", "input tokens", "output tokens"), COUNT),
    "cost": USD,
}


def _list_cells(run: ObservedRun) -> tuple[Value, ...]:
    usage, result, first_of = run.usage, run.result, run.arm.first_round_of
    solved = sum(right > 0 for _, right in run.count_samples(result.per_task, best=False))
    end, rounds = (f"first round of {first_of}", 1) if first_of else (result.end, len(result.rounds))
    name = (
        run.series if run.series.startswith(result.model) else result.model
    )  # with the language, where there are several
    place = (run.arm.name, shorten_model(name), str(run.seed), result.run, end, rounds)
    counts = (usage.requests, usage.input_tokens, usage.output_tokens)
    return (*place, Said(f"{solved}/{len(result.per_task)}", solved), *counts, usage)
