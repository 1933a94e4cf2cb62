"""Several models from the settings: each is made once, at its own server, or refused before anything starts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.config import resolve_settings
from opsmith.errors import OpsmithError, UsageError
from opsmith.executors.on_ray import FleetModel, RayExecutor
from opsmith.executors.wire import unpack_message
from opsmith.learn.identity import plain_settings, run_info
from opsmith.models.price import list_by_price
from opsmith.models.roles import RoleModels
from opsmith.models.table import make_models
from opsmith.settings import Settings

URL, OTHER = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
TEAM = Settings(models=("openai/a", "openai/b"), servers=(f"openai/a={URL}", f"openai/b={OTHER}"))


@pytest.fixture(autouse=True)
def keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def close(models: RoleModels) -> None:
    asyncio.run(models.close())


def test_what_has_one_name_at_one_server_is_one_model_with_one_limit() -> None:
    models = make_models(TEAM.replace(guardian_model="openai/b", analyst="openai/b"))
    assert list(models.by_name) == ["openai/a", "openai/b"]
    assert models.own is models.by_name["openai/a"]
    assert models.by_role["guardian"] is models.by_role["analyst"] is models.by_name["openai/b"]
    assert [models.model_for(agent, "openai/a").name for agent in ("proposer", "repair-1", "guardian", "planner")] == [
        *["openai/a"] * 2,
        "openai/b",
        "openai/a",
    ]
    close(models)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"servers": ()}, "model 'openai/a': given no key; expected OPENAI_API_KEY"),
        ({"servers": (f"openai/a={URL}",)}, "model 'openai/b': given no key"),
        ({"base_url": URL}, "--base-url: given with 2 models"),
        ({"servers": (f"openai/a={URL}", f"openai/a={OTHER}")}, "--server: given twice for 'openai/a'"),
        ({"servers": (f"openai/c={URL}",)}, "expected NAME=URL with one of openai/a, openai/b"),
        ({"servers": ("openai/a=nowhere",)}, "--server: given 'nowhere'"),
        ({"servers": ("openai/a=http://me:secret@x/v1",)}, "--server: given a user or password"),
        ({"models": ("openai/a", "search"), "servers": (f"search={URL}",)}, "which asks no server"),
        ({"models": ("openai/a", "nobody/b"), "servers": ()}, "no such model"),
        (
            {"models": ("openai/a", "anthropic/b"), "servers": (), "completions": 4},
            "--completions: given 4 with model 'ant",
        ),
        ({"optimise": 1}, "--optimise: given with 2 models"),
        ({"models": (), "servers": (), "policy": "bandit"}, "--policy: given 'bandit' with one model"),
        ({"models": (), "model": "openai/a", "servers": (f"openai/a={URL}",)}, "expected --base-url URL"),
        ({"analyst": "openai/c", "analyst_url": URL, "servers": (f"openai/c={URL}",)}, "--analyst-url: given beside"),
    ],
)
def test_models_that_one_run_cannot_have_are_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_models(TEAM.replace(**changes))


def test_a_file_names_models_and_options_replace_them_all(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('models = ["search", "embedded"]\npolicy = "cheapest-first"\n')
    settings = resolve_settings(file, {})
    assert (settings.teamwork.team.models, settings.provider.model) == (("search", "embedded"), "search")
    alone = resolve_settings(file, {"model": "openai/a", "policy": "each"})
    assert (alone.teamwork.team.models, alone.provider.model) == ((), "openai/a")
    for text, words in (
        ('models = ["search", "search"]', "each model once"),
        ('models = ["search"]', "two or more"),
        ('model = "search"\nmodels = ["search", "embedded"]', "given beside models"),
        (f'models = ["search", "openai/a"]\nservers = ["openai/a={URL}"]', "a file cannot say where"),
    ):
        file.write_text(text)
        with pytest.raises(OpsmithError, match=words):
            resolve_settings(file, {})


def test_prices_order_models_and_what_is_not_known_comes_last() -> None:
    register()
    settings = Settings(
        models=("openai/a", "anthropic/b", "embedded"), servers=(f"openai/a={URL}", f"anthropic/b={URL}")
    )
    models = make_models(settings, TINY)
    assert list_by_price(models.by_name) == ["embedded", "openai/a", "anthropic/b"]
    close(models)


def test_the_runs_name_and_stored_settings_hold_the_team_and_no_secret() -> None:
    models = make_models(TEAM)
    tasks = [tiny_task("sum_0", "x y +")]
    info = run_info(tasks, [], None, models, TINY, TEAM)
    assert (info.model, info.id.rpartition("-s0-")[0]) == ("openai/a + openai/b", "a-b")
    assert info.settings["models"] == ["openai/a", "openai/b"]
    assert plain_settings(TEAM)["servers"] == [f"openai/a={URL}", f"openai/b={OTHER}"]
    other = run_info(tasks, [], None, models, TINY, TEAM.replace(policy="bandit"))
    assert other.id != info.id
    close(models)


def test_on_a_cluster_the_model_that_computes_is_spread_and_the_others_ask_from_here() -> None:
    register()
    settings = Settings(models=("openai/a", "embedded"), servers=(f"openai/a={URL}",))
    executor = RayExecutor(settings, [tiny_task("sum_0", "x y +")])
    executor._fleet = object()  # type: ignore[assignment]  # of which nothing is asked here
    models = executor.make_models()
    assert [isinstance(model, FleetModel) for model in models.by_name.values()] == [False, True]
    assert models.own is models.by_name["openai/a"]
    assert unpack_message(executor._pack_order())["settings"]["model"] == "embedded"
    close(models)
