"""An experiment from its file to its pages: plan, perform, study, analyse, write."""

from __future__ import annotations

from pathlib import Path

from opsmith.learn.events import OnEvent
from opsmith.store import Store
from opsmith_lab.evaluation.analyses import ANALYSES
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.files import ConductedExperiment, publish_results
from opsmith_lab.evaluation.perform import perform_runs
from opsmith_lab.evaluation.plan import ExperimentOptions, format_command, load_run_tasks, plan_runs
from opsmith_lab.evaluation.reporting import report_study
from opsmith_lab.evaluation.study import read_study


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
    runs = {run.result.run: run.result.usage.cost_usd or 0.0 for run in performed.runs}
    command = format_command(experiment, options)
    return publish_results(results, report_study(study), analysis, command, sum(runs.values()))
