"""What must hold of an experiment from one language to another, wherever the compilers of both are installed.

A server on loopback answers with the language's own plain programs, so that nothing here says what a model would do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from models.servers import OpenAIServer

from languages.model_servers import answer_with_programs
from opsmith.learn.references import look_up_references
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.conduct import conduct_experiment
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.forecast import forecast_runs
from opsmith_lab.evaluation.plan import ExperimentOptions, load_run_tasks, plan_runs

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments("transfer")}
ARMS = {"reference and example": (True, True), "reference": (True, False), "example": (False, True),
        "neither": (False, False)}  # fmt: skip
TASKS = ("row_sum", "softmax")


def check_arms(experiment: Experiment) -> None:
    """They differ in what is shown and in nothing else."""
    measure = experiment.arms[0]
    assert [arm.name for arm in experiment.arms] == list(ARMS)
    for arm in experiment.arms:
        shown = "translate" in arm.settings, arm.settings.get("example", True)
        assert shown == ARMS[arm.name]
        budget = {"max_rounds": 1} if arm is measure else {"tokens_from": measure.name}
        assert (
            arm.settings.items() - {("translate", measure.settings["translate"]), ("example", False)} == budget.items()
        )
    assert experiment.settings["selection"] == "none", "no demonstration blurs what is shown"


def check_references(experiment: Experiment, tmp_path: Path) -> None:
    """Every task has one, and the price is known before."""
    tasks = load_run_tasks(plan_runs(experiment, ExperimentOptions())[0].settings)
    with Store.open(tmp_path) as store:
        references = look_up_references(experiment.arms[0].settings["translate"], tasks, store)
    assert references.keys() == {task.id for task in tasks}
    forecasts = forecast_runs(plan_runs(experiment, ExperimentOptions(samples=1, tasks=TASKS, seeds=(0,))))
    tokens = {forecast.arm: forecast.first.input_tokens for forecast in forecasts}
    assert tokens["reference and example"] > tokens["example"] > tokens["neither"] < tokens["reference"]


def read_shown(body: dict[str, Any]) -> tuple[str, str]:
    system, user, *_ = (message["content"] for message in body["messages"])
    return system, user


def check_prompts(experiment: Experiment, tmp_path: Path) -> None:
    """They differ by the part that an arm names."""
    language, source = str(experiment.settings["target"]), experiment.arms[0].settings["translate"]
    small = replace_samples(experiment)
    with (
        OpenAIServer(answer_with_programs(load_tasks(TASKS, language))) as server,
        Store.open(tmp_path / "runs") as store,
    ):
        options = ExperimentOptions(("openai/served",), None, TASKS, (0,), base_url=server.url)
        told = conduct_experiment(small, options, store, tmp_path / "results")
        spent = {run["arm"]: store.sum_usage(run["run"]) for run in told.data["runs"]}
        shown = {read_shown(body) for body in server.requests}
    totals = {arm: usage.input_tokens + usage.output_tokens for arm, usage in spent.items()}
    assert totals.keys() == ARMS.keys()
    assert len(set(totals.values())) == 1, "equal tokens"
    rules = min((system for system, _ in shown), key=len)
    systems = {system for system, _ in shown}
    assert len(systems) == 2
    assert all(system.startswith(rules) for system in systems)
    assert all(system[len(rules) :].startswith("example:\n") for system in systems - {rules})
    own = {task.id: (task.impl or "").strip() for task in load_tasks(TASKS, source)}
    for task in load_tasks(TASKS, language):
        users = {user for _, user in shown if yaml.safe_load(user)["task"] == yaml.safe_load(task.shown)}
        plain, with_reference = sorted(users, key=len)
        assert with_reference.startswith(plain)
        assert with_reference[len(plain) :].startswith("reference:\n")
        added = yaml.safe_load(with_reference)["reference"]
        assert (added["language"], added["program"].strip()) == (source, own[task.id])
    assert len(shown) == len(systems) * 2 * len(TASKS), "each with each"
    page = (tmp_path / "results" / f"{experiment.name}.md").read_text()
    assert "reference and example" in page


def replace_samples(experiment: Experiment) -> Experiment:
    """With two samples of a task in place of the file's."""
    return experiment.model_copy(update={"settings": {**experiment.settings, "samples": 2}})
