"""What the runs of an experiment would ask and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opsmith.agents.prompt import get_form
from opsmith.forecast.forecast import Forecast, Measure, forecast_run
from opsmith.forecast.prices import bill_requests
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Experience, Task, Usage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import get_target
from opsmith_lab.evaluation.plan import PlannedRun, load_run_tasks
from opsmith_lab.evaluation.showing import FEEDBACK


def forecast_runs(planned: Sequence[PlannedRun], store: Store | None = None) -> tuple[Forecast, ...]:
    """In the order of the runs; those of the store tell what to expect."""
    forecasts: list[Forecast] = []
    for run in planned:
        place = (run.measure_arm, run.series, run.settings.seed)
        measures = (
            Measure(forecast.most, forecast.expected)
            for earlier, forecast in zip(planned, forecasts, strict=False)
            if (earlier.arm.name, earlier.series, earlier.settings.seed) == place
        )
        measure = next(measures, None)
        tasks = load_run_tasks(run.settings)
        forecast = forecast_run(run.arm.name, run.settings, tasks, measure, run.begins_right, store)
        if run.arm.shows:
            own = next((each.settings.method.samples for each in planned if each.arm.name == run.arm.learns_from), 0)
            examples = own if run.arm.shows == FEEDBACK else len(tasks) - 1
            usual, most = (
                _bill_shown(run.settings, tasks, examples, usage.requests, usage is forecast.most)
                for usage in (forecast.expected, forecast.most)
            )
            forecast = replace(forecast, expected=forecast.expected + usual, most=forecast.most + most)
        forecasts.append(replace(forecast, model=run.name_model(forecast.model)))
    return tuple(forecasts)


def _bill_shown(settings: Settings, tasks: Sequence[Task], shown: int, requests: int, is_longest: bool) -> Usage:
    """What so many demonstrations add to each of the requests: with the tasks' own programs, or with programs of
    half the longest reply where there are none; `is_longest`: with programs of the longest."""
    form, longest = get_form(get_target(tasks[0].target), settings.method.prompt), "x" * 4 * settings.method.max_tokens
    programs = [longest if is_longest else task.impl or longest[::2] for task in tasks]
    examples = [
        form.write_example(Experience(task, program, 1.0, -1)) for task, program in zip(tasks, programs, strict=True)
    ]
    tokens = sum(map(estimate_tokens, examples)) * shown // len(tasks)
    return replace(bill_requests(settings, requests, tokens, 0), requests=0)
