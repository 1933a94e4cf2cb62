"""Experiments on agents: arms with equal samples or tokens, and which tasks each of them solves, pair by pair."""

from pathlib import Path

import pytest

from lab.evaluation.small import small
from opsmith.errors import TaskError, UsageError
from opsmith.models.table import read_servers
from opsmith.suites import load_tasks
from opsmith_lab.evaluation.analyses.solved import MORE, SOLVED, count_tasks
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.conduct import conduct_experiment
from opsmith_lab.evaluation.experiment import BY_ARM, Experiment
from opsmith_lab.evaluation.forecast import forecast_runs
from opsmith_lab.evaluation.measure import share_marks, subtract_marks
from opsmith_lab.evaluation.plan import ExperimentOptions, name_tasks, plan_runs
from opsmith_lab.evaluation.reading import read_experiment

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments("agents")}
SHORT = ExperimentOptions(samples=4, tasks=("gemm_1", "index_0", "norm_0"), seeds=(0, 1))


def test_plans_tools_reasoning_and_models_have_an_experiment_each() -> None:
    assert list(EXPERIMENTS) == ["models", "plans", "plans-blocks", "reasoning", "tools"]
    assert not EXPERIMENTS.keys() & {experiment.name for experiment in find_experiments("all")}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_arm_may_spend_what_the_first_one_did(experiment: Experiment) -> None:
    measure, *others = experiment.arms
    assert not measure.settings.keys() & set(BY_ARM)
    key = "budget_from" if experiment.name.startswith("plans") else "tokens_from"
    assert {arm.settings.get(key) for arm in others} == {measure.name}
    assert experiment.relative_to in {arm.name for arm in others}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_its_price_is_known_before(experiment: Experiment) -> None:
    options = ExperimentOptions(samples=1, tasks=("index_0",), seeds=(0,))
    measure, *others = forecast_runs(plan_runs(experiment, options))
    assert measure.first.requests > 0
    assert measure.first.cost_usd is not None
    assert {forecast.most for forecast in others} == {measure.most}


def test_plans_are_compared_with_the_settings_of_the_main_job_on_both_suites() -> None:
    plans, blocks = EXPERIMENTS["plans"], EXPERIMENTS["plans-blocks"]
    assert (plans.arms, plans.settings, plans.seeds) == (blocks.arms, blocks.settings, blocks.seeds)
    assert plans.settings == {"samples": 64, "temperatures": [1.0]}
    counts = [len(load_tasks(name_tasks(experiment, ExperimentOptions()))) for experiment in (plans, blocks)]
    assert counts == [26, 14]


def test_conversations_with_tools_and_several_models_cost_more_than_one_answer() -> None:
    options = ExperimentOptions(samples=1, tasks=("index_0",), seeds=(0,))
    tools = {forecast.arm: forecast.first for forecast in forecast_runs(plan_runs(EXPERIMENTS["tools"], options))}
    assert (tools["all"].requests, tools["no tools"].requests) == (1 + 8, 1)
    assert tools["all"].input_tokens > 9 * tools["no tools"].input_tokens
    models = {forecast.arm: forecast.first for forecast in forecast_runs(plan_runs(EXPERIMENTS["models"], options))}
    alone = [models["the cheaper alone"], models["the dearer alone"]]
    assert models["each"].requests == 2
    assert models["each"].cost_usd == pytest.approx(sum(usage.cost_usd or 0.0 for usage in alone))
    assert models["bandit"].cost_usd == models["the dearer alone"].cost_usd


def test_one_server_may_be_asked_for_all_models() -> None:
    options = ExperimentOptions(("openai/mine",), seeds=(0,), base_url="http://127.0.0.1:1/v1")
    planned = {run.arm.name: run.settings for run in plan_runs(EXPERIMENTS["models"], options)}
    assert read_servers(planned["bandit"]) == dict.fromkeys(
        planned["bandit"].teamwork.team.models, "http://127.0.0.1:1/v1"
    )
    assert planned["bandit"].provider.base_url is None
    assert planned["the cheaper alone"].provider.base_url == "http://127.0.0.1:1/v1"


def test_a_model_that_calls_no_tools_is_no_forecast() -> None:
    with pytest.raises(UsageError, match="embedded"):
        forecast_runs(plan_runs(EXPERIMENTS["tools"], ExperimentOptions(("embedded",), seeds=(0,))))


@pytest.mark.parametrize(
    "setting",
    [
        'servers = ["embedded=http://127.0.0.1:1/v1"]',
        'pass_env = ["HOME"]',
        'model = "command:sh"',
        'guardian_model = "command:sh"',
    ],
)
def test_a_file_says_neither_where_keys_go_nor_what_agents_see(setting: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    arm, model = f'[[arm]]\nname = "a"\n{setting}\n', '[[model]]\nname = "embedded"\n'
    file.write_text(f'title = "t"\nshows = "s"\nanalysis = "solved"\n{model}{arm}')
    with pytest.raises(TaskError, match=f"mine.toml:8: {setting.partition(' ')[0]}: expected the option"):
        read_experiment(file)


def test_arms_are_compared_by_task_and_seed() -> None:
    arm, base = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0}], [{"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.0}]
    more, own = count_tasks(subtract_marks(arm, base)), count_tasks(share_marks(arm))
    assert more is not None
    assert own is not None
    assert (more.value, more.seeds) == (0.5, (1.0, 0.0)), "one task of two seeds"
    assert (more.low, more.high) == (None, None), "two tasks are too few to draw anew"
    assert (own.value, own.seeds) == (1.5, (2.0, 1.0))


def test_the_page_says_which_tasks_were_solved_in_how_many_seeds(tmp_path: Path) -> None:
    text = Path("experiments/plans.toml").read_text().replace('name = "plans"\nplan = "static"', 'name = "plans"')
    (tmp_path / "mine.toml").write_text(text)
    with small(tmp_path) as place:
        done = conduct_experiment(read_experiment(tmp_path / "mine.toml"), SHORT, place.store, place.folder).data
    rows = {(row["arm"], row["measure"]): row["found"] for row in done["rows"]}
    assert {arm for arm, _ in rows} == {"plans", "none", "resampling"}
    assert ("none", MORE) not in rows, "it is the base itself"
    assert rows["plans", SOLVED]["value"] == sum(rows["plans", SOLVED]["seeds"]) / 2
    assert rows["plans", MORE]["value"] == 0, "the same run but for its budget"
    assert rows["plans", SOLVED]["low"] <= rows["plans", SOLVED]["value"] <= rows["plans", SOLVED]["high"]
    page = (place.folder / "mine.md").read_text()
    assert "| norm\\_0 | 0 of 2 | 0 of 2 | 0 of 2 |" in page
    assert "solved more than none" in page
