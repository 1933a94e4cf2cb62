"""What the runs of an experiment would ask and cost."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.forecast.forecast import Forecast, forecast_run
from opsmith_lab.evaluation.plan import PlannedRun, load_run_tasks


def forecast_runs(planned: Sequence[PlannedRun]) -> tuple[Forecast, ...]:
    """In the order of the runs."""
    forecasts: list[Forecast] = []
    for run in planned:
        measures = zip(planned, forecasts, strict=False)
        measure = next((forecast.most for earlier, forecast in measures if _is_measure(earlier, run)), None)
        tasks = load_run_tasks(run.settings)
        forecasts.append(forecast_run(run.arm.name, run.settings, tasks, measure, run.begins_right))
    return tuple(forecasts)


def _is_measure(earlier: PlannedRun, run: PlannedRun) -> bool:
    place = (run.measure_arm, run.series, run.settings.seed)
    return (earlier.arm.name, earlier.series, earlier.settings.seed) == place
