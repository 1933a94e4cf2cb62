"""What the runs of an experiment would ask and cost."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.forecast.forecast import Forecast, Measure, forecast_run
from opsmith.store import Store
from opsmith_lab.evaluation.plan import PlannedRun, load_run_tasks


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
        forecasts.append(forecast_run(run.arm.name, run.settings, tasks, measure, run.begins_right, store))
    return tuple(forecasts)
