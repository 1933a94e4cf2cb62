"""An experiment from its file to its pages: plan, perform, study, analyse, write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from opsmith.learn.events import OnEvent
from opsmith.store import Store
from opsmith_lab.evaluation import files
from opsmith_lab.evaluation.analyses import ANALYSES
from opsmith_lab.evaluation.charts import describe_mark
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.index import write_index
from opsmith_lab.evaluation.page import ResultsOrigin
from opsmith_lab.evaluation.perform import perform_runs
from opsmith_lab.evaluation.plan import ExperimentOptions, format_command, load_run_tasks, plan_runs
from opsmith_lab.evaluation.study import read_study


@dataclass(frozen=True)
class ConductedExperiment:
    """What is told of an experiment that was run."""

    name: str
    stopped: str  # "": it is complete
    cost: float  # USD of its runs, as far as known
    lines: tuple[str, ...]
    data: dict[str, Any]


def conduct_experiment(
    experiment: Experiment,
    options: ExperimentOptions,
    store: Store,
    results: Path,
    max_cost: float | None = None,
    on_event: OnEvent | None = None,
) -> ConductedExperiment:
    """Run what is not there yet, and write the result as far as it has come."""
    planned = plan_runs(experiment, options)
    tasks = load_run_tasks(planned[0].settings)  # their ids and groups are those of all arms
    performed = perform_runs(experiment, planned, store, max_cost, on_event)
    if not performed.runs:  # the money was spent by other experiments: what was written before stays
        return ConductedExperiment(
            experiment.name, performed.stopped, 0.0, (f"{experiment.name}: nothing was asked",), {}
        )
    study = read_study(experiment, store, tasks, performed.runs, performed.stopped)
    analysis = ANALYSES[experiment.analysis](study)
    provenance = ResultsOrigin(
        format_command(experiment, options), date.today().isoformat(), metadata.version("opsmith")
    )
    written = files.write_results(results, study, analysis, provenance)
    write_index(results)
    runs = {run.result.run: run.result.usage.cost_usd or 0.0 for run in performed.runs}
    lines = tuple(_describe_result(experiment.name, describe_mark(study), analysis.headline, written))
    return ConductedExperiment(
        experiment.name, performed.stopped, sum(runs.values()), lines, files.as_json(study, analysis, provenance)
    )


def _describe_result(name: str, mark: str, headline: str, written: tuple[Path, ...]) -> Iterator[str]:
    yield f"{name}: {headline}"
    if mark:
        yield f"  {mark}"
    yield f"  {', '.join(map(str, written))}"
