"""What a dry run says, by arithmetic of its own."""

from pathlib import Path

import pytest

from opsmith.agents.prompt import compose_prompt
from opsmith.errors import UsageError
from opsmith.forecast import forecast
from opsmith.forecast.forecast import Forecast, forecast_run
from opsmith.forecast.prices import price_requests
from opsmith.models.price import price_reply
from opsmith.records import Usage
from opsmith.results.precedents import Precedent
from opsmith.settings import Settings
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.forecast import forecast_runs
from opsmith_lab.evaluation.plan import ExperimentOptions, load_run_tasks, plan_runs
from opsmith_lab.evaluation.reading import read_experiment

GPT = "openai/gpt-4o-2024-11-20"
TASKS = ("attn_0", "gemm_1", "index_0")


def _forecast(name: str, model: str, samples: int | None = None) -> dict[str, Forecast]:
    asked = ExperimentOptions((model,), samples, TASKS)
    return {item.arm: item for item in forecast_runs(plan_runs(find_experiments(name)[0], asked))}


def test_a_single_round_is_counted_exactly() -> None:
    found = _forecast("table2", GPT, samples=10)["single"]
    prompts = [compose_prompt(task, (), get_target("step"), None, 0).input_tokens for task in load_tasks(TASKS)]
    assert (found.first.requests, found.rounds) == (3 * 10, 1)
    assert found.first.input_tokens == 30 * (sum(prompts) // 3)
    assert found.first.output_tokens == 30 * 1024
    one = price_reply("openai", ("gpt-4o-2024-11-20",), Usage(1, sum(prompts) // 3, 1024))
    assert one is not None
    assert found.first.cost_usd == pytest.approx(30 * one)
    assert found.most == found.first


def test_the_guardian_is_one_request_more_for_each_answer() -> None:
    found = _forecast("table2", GPT, samples=10)
    assert found["agent"].first.requests == 2 * found["single"].first.requests
    assert _forecast("table2", "embedded", samples=10)["agent"].first.requests == 30  # its guardian is static


def test_turns_of_repair_are_requests_with_ever_longer_prompts() -> None:
    found = _forecast("repair", "embedded", samples=10)
    requests = [found[f"k = {k}"].first.requests for k in (0, 1, 2)]
    assert requests == [30, 60, 90]
    assert found["k = 2"].first.input_tokens > 3 * found["k = 0"].first.input_tokens


def test_the_longest_run_solves_one_task_in_the_last_round_of_each_cycle() -> None:
    found = _forecast("fig8", GPT, samples=1)
    assert [found[f"m = {m}"].rounds for m in (1, 2, 3)] == [1 + 1 + 1, 1 + 1 + 2, 1 + 1 + 2]  # 3 tasks: two cycles
    requests = 3 * 2 * (3 + 2 + 1)  # temperatures, agents; tasks of each round with m = 1
    assert found["m = 1"].most.requests == requests


def test_a_control_spends_at_most_what_its_measure_does() -> None:
    found = _forecast("control", GPT, samples=1)
    assert found["as many tokens"].most == found["adaptive"].most
    assert found["as many tokens"].rounds is None


@pytest.mark.parametrize(
    ("model", "base_url", "known"),
    [
        (GPT, None, True),
        ("openai/no-such-model", None, False),
        (GPT, "http://127.0.0.1:1/v1", False),
        ("embedded", None, True),
        ("search", None, True),
    ],
)
def test_an_unknown_price_is_not_guessed(model: str, base_url: str | None, known: bool) -> None:
    found = price_requests(model, base_url, 10, 1000, 100)
    assert (found is not None) is known
    assert found != 0 or model in ("embedded", "search")


@pytest.mark.parametrize("model", ["gpt-4o", "opnai/gpt-4o", "embedded2"])
def test_a_name_that_is_no_models_is_not_free(model: str) -> None:
    with pytest.raises(UsageError, match=f"model '{model}': no such model; known: embedded, search, tuner, analyst"):
        price_requests(model, None, 10, 1000, 100)


def _run(**values: object) -> Usage:
    settings = Settings(model=GPT, samples=10, temperatures=(0.4, 1.0), **values)  # type: ignore[arg-type]
    return forecast_run("run", settings, load_tasks(TASKS)).first


def test_a_request_for_several_completions_reads_its_prompt_once() -> None:
    one, four = _run(agents="single"), _run(agents="single", completions=4)
    assert (one.requests, four.requests) == (3 * 2 * 10, 3 * 2 * 3)
    assert four.input_tokens * 10 == one.input_tokens * 3
    assert four.output_tokens == one.output_tokens
    assert one.cost_usd is not None
    assert four.cost_usd == pytest.approx(one.cost_usd - (one.input_tokens - four.input_tokens) * 2.5e-6)
    guarded = _run(guardian="llm", completions=4)
    assert guarded.requests == 3 * 2 * (3 + 10), "the guardian is asked about each"


def test_a_batch_costs_half() -> None:
    whole = _run(agents="single").cost_usd
    assert whole is not None
    assert _run(agents="single", batch=True).cost_usd == pytest.approx(whole / 2)


@pytest.mark.parametrize("values", [{"completions": 2}, {"batch": True}])
def test_what_the_model_cannot_do_is_no_forecast(values: dict[str, object]) -> None:
    settings = Settings(model="deepseek/deepseek-chat", **values)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="deepseek/deepseek-chat"):
        forecast_run("run", settings, load_tasks(TASKS))


def test_arms_may_be_asked_in_another_language_with_options_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "languages.toml"
    file.write_text(
        f'title = "t"\nshows = "s"\nanalysis = "methods"\n[settings]\nsamples = 4\ntarget = "c"\n'
        f'[[model]]\nname = "{GPT}"\n[[arm]]\nname = "default"\n'
        '[[arm]]\nname = "fast-math"\ntarget_options = {flags = "-O3 -ffast-math"}\n'
    )
    planned = plan_runs(read_experiment(file), ExperimentOptions(tasks=("kernels/softmax", "index_0")))
    tasks = [load_run_tasks(run.settings) for run in planned]
    assert [[(task.id, task.target) for task in own] for own in tasks] == [[("softmax", "c"), ("index_0", "c")]] * 2
    assert ["-ffast-math" in own[0].prompt_text for own in tasks] == [False, True]
    longer = [forecast.first.input_tokens for forecast in forecast_runs(planned)]
    assert longer[0] < longer[1], "the flags stand in the prompt"


def test_optimisation_rounds_ask_analyst_generator_and_fixer_for_every_attempt() -> None:
    """Every run of the experiment begins with right programs: nothing is asked to solve them."""
    forecasts = {
        forecast.arm: forecast
        for forecast in forecast_runs(plan_runs(find_experiments("kforge-swarm")[0], ExperimentOptions(seeds=(0,))))
    }
    measure = forecasts["one model"]
    assert (measure.first.requests, measure.rounds) == (6 * 4 * 2, 3), "tasks, attempts, generator and one fix"
    assert measure.most.requests == 3 * measure.first.requests
    assert measure.most.cost_usd == 0.0
    assert forecasts["swarm"].most == measure.most
    settings = Settings(model=GPT, tasks=("index_2",), optimise=2, beam=3, fixes=0, objective="cycles")
    tasks = load_tasks(("index_2",))
    asked = forecast_run("run", settings, tasks, begins_right=True)
    assert asked.most.requests == (1 + 3) * 4 * 2, "a first round has one program to set out from; an analyst each"
    cheaper = forecast_run("run", settings.replace(analyst="openai/gpt-4o-mini-2024-07-18"), tasks, begins_right=True)
    assert cheaper.most.cost_usd is not None
    assert asked.most.cost_usd is not None
    assert cheaper.most.cost_usd < asked.most.cost_usd
    assert forecast_run("run", settings.replace(analyst="none"), tasks).most.requests > 16, "functional rounds too"


@pytest.mark.parametrize("max_rounds", [1, 2, None])
@pytest.mark.parametrize("given", [0, 2])
def test_nothing_is_expected_that_is_more_than_at_most(monkeypatch, max_rounds, given) -> None:
    """As of a run that showed known programs from its first round on, with long replies of many rounds."""
    stored = Precedent("a", GPT, (1.0, 1.0, 0.9, 0.9, 0.9), (3.0,) * 5, reply_tokens=9000)
    monkeypatch.setattr(forecast, "list_precedents", lambda *_: (stored,))
    settings = Settings(model=GPT, samples=8, max_rounds=max_rounds)
    found = forecast_run("run", settings, load_tasks(TASKS), given=given)
    expected, most = found.expected, found.most
    assert found.expected_rounds is not None
    assert found.rounds is not None
    assert 0 < found.expected_rounds <= found.rounds
    assert 0 < expected.requests <= most.requests
    assert 0 < expected.input_tokens <= most.input_tokens
    assert 0 < expected.output_tokens <= most.output_tokens
    assert found.first.input_tokens <= expected.input_tokens
