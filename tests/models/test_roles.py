"""Which model has which role: made from the settings in one place, asked by the agent's name, closed together."""

from __future__ import annotations

import asyncio

import pytest
from learn.tiny_run import TASKS, TinyModel
from tiny_target import TINY

from opsmith.errors import UsageError
from opsmith.learn.identity import plain_settings, run_info
from opsmith.models.roles import RoleModels, gather_models
from opsmith.models.table import choose_settings, make_models
from opsmith.settings import Settings

SERVER = "http://127.0.0.1:1/v1"
OWN = Settings(model="openai/a", base_url=SERVER, optimise=1, concurrency=3)


@pytest.fixture(autouse=True)
def keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("analyst", [None, "none", "openai/a"])
def test_the_runs_own_model_has_every_role_that_no_other_model_has(analyst: str | None) -> None:
    models = make_models(OWN.replace(analyst=analyst))
    assert models.list_models() == (models.own,)
    assert models.model_for("analyst") is models.model_for("repair-1") is models.own
    asyncio.run(models.close())


def test_the_analyst_may_be_another_model_at_another_server() -> None:
    models = make_models(OWN.replace(analyst="anthropic/b", analyst_url="http://127.0.0.1:2", completions=4))
    assert [model.name for model in models.list_models()] == ["openai/a", "anthropic/b"]
    assert [models.model_for(agent).name for agent in ("analyst", "proposer", "repair-2", "guardian")] == [
        "anthropic/b",
        *["openai/a"] * 3,
    ]
    asyncio.run(models.close())


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"analyst": "openai/b"}, SERVER),
        ({"analyst": "openai/b", "analyst_url": "http://x/v1"}, "http://x/v1"),
        ({"analyst": "anthropic/b"}, None),
        ({"analyst": "openai/a", "analyst_url": "http://x/v1"}, "http://x/v1"),
    ],
)
def test_a_role_is_asked_at_the_server_of_ones_own_where_it_speaks_its_protocol(
    changes: dict[str, str], url: str | None
) -> None:
    [chosen] = choose_settings(OWN.replace(**changes)).values()
    assert (chosen.provider.model, chosen.provider.base_url) == (changes["analyst"], url)
    assert chosen.provider.concurrency == 3


def test_what_only_the_proposer_can_is_not_asked_of_a_role() -> None:
    settings = OWN.replace(analyst="deepseek/b", completions=4, batch=True)
    [chosen] = choose_settings(settings).values()
    assert (chosen.provider.completions, chosen.provider.batch) == (1, False)
    [batched] = choose_settings(settings.replace(analyst="anthropic/b")).values()
    assert batched.provider.batch


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"analyst_url": SERVER}, "--analyst-url"),
        ({"analyst": "none", "analyst_url": SERVER}, "--analyst-url"),
        ({"analyst": "nobody/b"}, "no such model"),
        ({"analyst": "anthropic/b"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_a_role_that_cannot_be_filled_is_said_before_anything_is_asked(changes: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_models(OWN.replace(**changes))


class Named(TinyModel):
    def __init__(self, name: str, is_language_model: bool = False, fails: bool = False) -> None:
        super().__init__()
        self.name, self.is_language_model, self.fails, self.closed = name, is_language_model, fails, 0

    async def close(self) -> None:
        self.closed += 1
        if self.fails:
            raise OSError("broken")


def test_every_model_is_closed_once_also_where_one_cannot_be() -> None:
    own, analyst = Named("a", fails=True), Named("b")
    with pytest.raises(OSError, match="broken"):
        asyncio.run(RoleModels(own, {"analyst": analyst, "repair": analyst}).close())
    assert (own.closed, analyst.closed) == (1, 1)


def test_a_run_is_named_by_every_model_that_decides_and_as_ever_where_it_has_one() -> None:
    settings, own = Settings(optimise=1), TinyModel()
    names = [
        run_info(TASKS, [], None, gather_models(models), TINY, settings).id
        for models in (
            own,
            RoleModels(own),
            RoleModels(own, {"analyst": Named("b")}),
            RoleModels(own, {"analyst": Named("c")}),
        )
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_a_run_asks_a_language_model_if_any_of_its_models_is_one() -> None:
    for is_one in (True, False):
        models = RoleModels(Named("a"), {"analyst": Named("b", is_one)})
        assert run_info(TASKS, [], None, models, TINY, Settings()).is_language_model == is_one


def test_no_password_of_a_roles_server_is_stored() -> None:
    settings = OWN.replace(analyst="openai/b", analyst_url="http://me:secret@x/v1?key=1")
    assert plain_settings(settings)["analyst_url"] == "http://x/v1"


def test_a_program_that_samples_name_proposes_nothing_and_has_no_other_role() -> None:
    own, program = Named("a"), Named("p")
    models = RoleModels(own, programs={"join": program})
    assert models.proposers == ("",)
    assert models.model_for("proposer", "join") is program
    assert models.model_for("guardian", "join") is models.model_for("proposer") is own
