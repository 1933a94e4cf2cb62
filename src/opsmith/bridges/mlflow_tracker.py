"""A run in MLflow: its settings as params, metrics for each round and in the end, its result and files as artifacts.

MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME say where (by default MLflow's own place, experiment `opsmith`). A run
that goes on after it was stopped goes on in the same MLflow run, which is found by its tags; rounds that are there
already are not logged again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run

from opsmith.bridges.tracker import Status
from opsmith.records import Usage
from opsmith.results.result import RunResult, result_of
from opsmith.store import Store
from opsmith.store.attempts import spent_by_round
from opsmith.store.queries import RunSummary
from opsmith.store.rows import FUNCTIONAL

EXPERIMENT = "opsmith"
STATUS = {Status.RUNNING: "RUNNING", Status.FINISHED: "FINISHED", Status.STOPPED: "KILLED", Status.FAILED: "FAILED"}
MAX_VALUE = 6000  # characters of a param that MLflow takes
_ODD = re.compile(r"[^\w\- ]")  # in a group's name: what would be a path, or is forbidden in a metric's name


class MlflowTracker:
    """See `opsmith.bridges.trackers.Tracker`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._client = MlflowClient()

    def update_run(self, run: str, status: Status, files: tuple[Path, ...]) -> None:
        summary = self._store.summarise_run(run)
        logged = self._find_run(summary) or self._create_run(summary)
        name, is_finished = logged.info.run_id, logged.info.status == STATUS[Status.FINISHED]
        # what decided the run's result; the same however often it is stopped
        params = {**summary.info.settings, "model_name": summary.info.model}
        self._client.log_batch(name, params=[Param(key, _format_value(value)) for key, value in params.items()])
        self._log_rounds(name, run)
        if status is not Status.RUNNING and not is_finished:
            self._log_result(name, result_of(self._store, run))
        for file in files:
            self._client.log_artifact(name, str(file))
        if not is_finished:
            self._client.update_run(name, status=STATUS[status])
            if status is not Status.RUNNING:
                self._client.set_terminated(name, STATUS[status])

    def _find_run(self, summary: RunSummary) -> Run | None:
        """The MLflow run of this run of this store: another store's run of the same name began at another time."""
        filter_string = " and ".join(f"tags.`{key}` = '{value}'" for key, value in _identify_run(summary).items())
        runs = self._client.search_runs([self._find_experiment()], filter_string=filter_string, max_results=1)
        return runs[0] if runs else None

    def _create_run(self, summary: RunSummary) -> Run:
        info = summary.info
        tags = _identify_run(summary) | {
            "opsmith.model": info.model,
            "opsmith.is_language_model": str(info.is_language_model).lower(),
            "opsmith.target": info.target,
            "opsmith.verifier": str(info.versions.get("verifier", "")),
            "opsmith.version": str(info.versions.get("opsmith", "")),
        }
        return self._client.create_run(self._find_experiment(), int(summary.started * 1000), tags, info.id)

    def _find_experiment(self) -> str:
        experiment_id = os.environ.get("MLFLOW_EXPERIMENT_ID")
        if experiment_id:
            return experiment_id
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        experiment = self._client.get_experiment_by_name(name)
        return str(experiment.experiment_id if experiment else self._client.create_experiment(name))

    def _log_rounds(self, name: str, run: str) -> None:
        """Log the rounds that have ended and are not there yet."""
        there = {metric.step for metric in self._client.get_metric_history(name, "solved")}
        spent, total, solved = spent_by_round(self._store, run), Usage(), 0
        for info, newly_solved in self._store.read_rounds(run):
            if newly_solved is None or info.phase != FUNCTIONAL:
                continue
            of_round = spent[info.number]
            total, solved = total + of_round.usage, solved + len(newly_solved)
            figures = {
                "new": len(newly_solved),
                "attempted": len(info.attempted),
                "demonstrations": len(info.demonstrations),
                "right": of_round.right,
                "judged": of_round.judged,
                "unjudged": info.planned - of_round.judged,
                **_list_spending(total),
                "solved": solved,
            }
            if info.number not in there:
                self._log_figures(name, figures, info.number)

    def _log_result(self, name: str, result: RunResult) -> None:
        figures = {"pass_at_1": result.overall.pass_at_1, "pass_at_n": result.overall.pass_at_n}
        for named, score in result.groups.items():
            group = _ODD.sub("_", named)
            figures |= {f"pass_at_1/{group}": score.pass_at_1, f"pass_at_n/{group}": score.pass_at_n}
        last = max((round_result.round for round_result in result.rounds), default=0)
        self._log_figures(name, figures, last)
        self._client.log_text(name, json.dumps(result.as_json(), indent=1), "result.json")
        self._client.set_tag(name, "opsmith.end", result.end)

    def _log_figures(self, name: str, figures: Mapping[str, float | None], step: int) -> None:
        """Figures that are not known are left out."""
        now = int(time.time() * 1000)
        metrics = [Metric(key, value, now, step) for key, value in figures.items() if value is not None]
        self._client.log_batch(name, metrics=metrics)


def _identify_run(summary: RunSummary) -> dict[str, str]:
    return {"opsmith.run": summary.info.id, "opsmith.started": f"{summary.started:.6f}"}


def _list_spending(usage: Usage) -> dict[str, float | None]:
    """Of the run up to a round's end."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    }


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:MAX_VALUE]
