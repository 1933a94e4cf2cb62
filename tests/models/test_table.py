"""Names of models become models; a wrong name, key, address or package is said with what to do."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from opsmith.errors import UsageError
from opsmith.models import Request, table
from opsmith.models.openai import OpenAIModel
from opsmith.models.order import Order
from opsmith.models.table import FAMILIES, Family, ProviderServer, check_thinking, get_model, list_models
from opsmith.records import Usage
from opsmith.settings import Settings

from .common import ASKED, CANARY, FakeTime, ask
from .servers import AnthropicServer, OpenAIServer

VARIABLES = {"openai/": "OPENAI", "anthropic/": "ANTHROPIC", "deepseek/": "DEEPSEEK", "together/": "TOGETHER"}


@pytest.mark.parametrize(
    "name", ["gpt-4o", "", "openai", "openai/", "Openai/x", "replay:", "replay/x", "embedded/x", "embeddedx", "/"]
)
def test_an_unknown_name_is_answered_with_what_exists(name):
    with pytest.raises(UsageError) as caught:
        get_model(Settings(model=name))
    known, _, hint = str(caught.value).partition("; try: ")
    assert known == (
        f"model {name!r}: no such model; known: embedded, search, tuner, analyst, metaschedule, templates, openai/NAME, anthropic/NAME, deepseek/NAME, "
        f"together/NAME, mind/NAME, swarm:NAME,NAME, command:PROGRAM ARGS, replay:FILE"
    )
    assert hint == (f"who serves it in front, such as openai/{name}" if name.isalnum() or name == "gpt-4o" else "")


@pytest.mark.parametrize("prefix", VARIABLES)
def test_a_missing_key_is_named(monkeypatch, prefix):
    monkeypatch.delenv(f"{VARIABLES[prefix]}_API_KEY")
    with pytest.raises(UsageError, match=f"expected {VARIABLES[prefix]}_API_KEY in the environment or in .env"):
        get_model(Settings(model=f"{prefix}m"))


def test_a_key_from_the_file_is_used(monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    Path(".env").write_text("DEEPSEEK_API_KEY=sk-in-the-file")
    with OpenAIServer() as server:
        ask("deepseek/deepseek-chat", server.url)
    assert server.headers[0]["authorization"] == "Bearer sk-in-the-file"


@pytest.mark.parametrize(("prefix", "url"), [(name, f.server.url) for name, f in FAMILIES.items() if f.server])
def test_each_provider_is_asked_at_its_own_address(monkeypatch, prefix, url):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere")
    model = get_model(Settings(model=f"{prefix}some/name"))
    assert str(model.client.base_url).rstrip("/") == url
    assert (model.name, model.is_language_model) == (f"{prefix}some/name", True)
    asyncio.run(model.close())


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://x", "http://", "http://x:port", "http://u:secret@x/v1", "http://[::1", "x", ""]
)
def test_a_wrong_address_is_refused(url):
    with pytest.raises(UsageError, match="--base-url: given ") as caught:
        get_model(Settings(model="openai/m", base_url=url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["replay:x"])
def test_an_address_for_a_model_without_server_is_refused(name):
    with pytest.raises(UsageError, match="which asks no server"):
        get_model(Settings(model=name, base_url="http://x"))


@pytest.mark.parametrize("name", ["embedded", "search", "replay:x", "deepseek/m", "together/m"])
def test_a_batch_is_refused_where_no_batch_api_is_known(name):
    with pytest.raises(
        UsageError, match=f"--batch: given with model '{name}'.*expected openai/NAME and anthropic/NAME"
    ):
        get_model(Settings(model=name, batch=True))


def test_the_providers_own_price_holds_only_at_the_provider(monkeypatch):
    with OpenAIServer() as server:
        assert ask("openai/gpt-4o", server.url).usage.cost_usd is None
        here = ProviderServer(server.url, "OPENAI_API_KEY", "openai")
        monkeypatch.setitem(FAMILIES, "openai/", replace(FAMILIES["openai/"], server=here))
        usage = ask("openai/gpt-4o", None).usage
    assert usage == Usage(1, 100, 10, 60, pytest.approx((40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6))


def test_models_are_listed_with_their_variable_and_never_the_key(monkeypatch):
    monkeypatch.delenv("TOGETHER_API_KEY")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "not a key")
    listed = {info.pattern: (info.variable, info.key_present) for info in list_models()}
    assert listed == {
        "embedded": (None, None),
        "tuner": (None, None),
        "analyst": (None, None),
        "search": (None, None),
        "metaschedule": (None, None),
        "templates": (None, None),
        "openai/NAME": ("OPENAI_API_KEY", True),
        "anthropic/NAME": ("ANTHROPIC_API_KEY", True),
        "deepseek/NAME": ("DEEPSEEK_API_KEY", True),
        "together/NAME": ("TOGETHER_API_KEY", False),
        "mind/NAME": (None, None),
        "swarm:NAME,NAME": (None, None),
        "command:PROGRAM ARGS": (None, None),
        "replay:FILE": (None, None),
    }
    assert CANARY not in str(list_models())


@pytest.mark.parametrize(("name", "package"), [("openai/m", "openai"), ("anthropic/m", "anthropic")])
@pytest.mark.parametrize("missing", ["sdk", "aiohttp"])
def test_a_missing_package_is_said_with_the_command_that_installs_it(monkeypatch, name, package, missing):
    monkeypatch.setitem(sys.modules, package if missing == "sdk" else "aiohttp", None)
    with pytest.raises(UsageError, match=r"given no package .*; try: pip install 'opsmith\[providers\]'"):
        get_model(Settings(model=name))


def test_importing_the_models_imports_nothing_heavy():
    code = (
        "import sys, opsmith.models, opsmith.models.table as t, opsmith.models.openai, opsmith.models.anthropic;"
        "t.list_models();"
        "heavy = {'torch', 'numpy', 'openai', 'anthropic', 'aiohttp', 'httpx2', 'genai_prices'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_model_shows_no_key():
    with OpenAIServer() as server:
        model = get_model(Settings(model="openai/m", base_url=server.url))
    assert isinstance(model, OpenAIModel)
    assert CANARY not in repr(model) + repr(model._endpoint) + repr(vars(model))
    asyncio.run(model.close())


@pytest.mark.parametrize(("name", "server_type"), [("openai/m", OpenAIServer), ("anthropic/m", AnthropicServer)])
def test_many_requests_run_at_once_and_each_gets_its_own_answer(name, server_type):
    async def go(url: str) -> list[str]:
        model = get_model(Settings(model=name, base_url=url), retry=FakeTime().retry())
        requests = [Request(ASKED.messages, max_tokens=number) for number in range(1, 101)]
        replies = await asyncio.gather(*(model.complete(request) for request in requests))
        await model.close()
        return [reply.texts[0] for reply in replies]

    with server_type(lambda body: str(body["max_tokens"])) as server:
        assert asyncio.run(go(server.url)) == [str(number) for number in range(1, 101)]
    assert server.count == 100


@pytest.mark.parametrize("name", ["embedded", "search", "anthropic/m", "deepseek/m"])
def test_several_completions_are_refused_where_a_request_brings_one(name):
    with pytest.raises(
        UsageError, match=f"--completions: given 2 with model '{name}'.*expected openai/NAME, together/"
    ):
        get_model(Settings(model=name, completions=2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"think": True, "model": "embedded"}, "--think: given with model 'embedded', a program, which writes no plan"),
        ({"think": True, "model": "swarm:search,tuner"}, "--think: given with model 'search', 'tuner', a program"),
        ({"reasoning": "low", "model": "search"}, "--reasoning low: given with model 'search', which cannot be told"),
        ({"reasoning": "high", "model": "command:x"}, "expected openai/NAME, anthropic/NAME, deepseek/NAME"),
    ],
)
def test_thinking_is_refused_where_nobody_can_do_it(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        check_thinking(Settings(**changes))


def test_of_several_models_those_that_cannot_think_ignore_it() -> None:
    check_thinking(Settings(models=("embedded", "openai/x"), think=True, reasoning="low"))
    check_thinking(Settings(model="command:x", think=True))


def test_another_package_adds_a_family_which_is_looked_for_under_unknown_names_only(monkeypatch) -> None:
    asked: list[str] = []

    def list_points(*, group: str, name: str) -> tuple[EntryPoint, ...]:
        asked.append(name)
        return (EntryPoint("acme", f"{__name__}:ACME", group),) if name == "acme" else ()

    monkeypatch.setattr(table.metadata, "entry_points", list_points)
    assert get_model(Settings(model="acme/small")).name == "small"
    get_model(Settings(model="openai/any", base_url="http://127.0.0.1:9/v1"))
    assert "openai" not in asked
    with pytest.raises(UsageError, match="no such model; known: embedded"):
        get_model(Settings(model="nowhere/small"))
    with pytest.raises(UsageError, match="no such model"):
        get_model(Settings(model="acme"))


def make_acme(order: Order) -> SimpleNamespace:
    return SimpleNamespace(name=order.model)


ACME = Family("NAME", "a family of another package", f"{__name__}:make_acme")
