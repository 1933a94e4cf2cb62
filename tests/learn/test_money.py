"""A limit on the money holds at a priced server, whatever is asked at once and however often the run is started."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from models.servers import OpenAIServer
from tiny_run import SETTINGS, TASKS, InProcess

from opsmith.learn.events import Event, Warned
from opsmith.learn.loop import improve
from opsmith.models.table import FAMILIES, ProviderServer, get_model
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.spending import known_usd

pytest.importorskip("openai", reason="the providers extra is not installed")

INPUT_USD = (40 * 2.5 + 60 * 1.25) / 1e6  # of one request, as OpenAIServer states it: gpt-4o-2024-11-20
OUTPUT_USD = 10 * 10 / 1e6  # of one completion


def answer(body: dict[str, Any]) -> str:
    return "impl: |\n  x y\n"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """OpenAI itself, as far as prices go."""
    with OpenAIServer(answer) as server:
        here = ProviderServer(server.url, "OPENAI_API_KEY", "openai")
        monkeypatch.setitem(FAMILIES, "openai/", replace(FAMILIES["openai/"], server=here))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test-1234")
        yield server


def run(store: Store, settings: Settings) -> tuple[RunResult, list[str]]:
    events: list[Event] = []
    model = get_model(settings)
    result = improve(TASKS, model, settings, store, judge=InProcess(), on_event=events.append)
    return result, [event.message for event in events if isinstance(event, Warned)]


CASES = [{}, {"completions": 4}, {"guardian": "llm"}, {"guardian": "llm", "completions": 4, "repair": 1}]


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_more_is_spent_than_the_cap_and_what_is_in_flight(
    tmp_path: Path, provider: OpenAIServer, case: dict[str, Any], concurrency: int
) -> None:
    values = {"model": "openai/gpt-4o", "concurrency": concurrency, **case}
    one = INPUT_USD + OUTPUT_USD * values.get("completions", 1)  # the dearest request
    with Store.open(tmp_path) as store:
        for cap in (10 * one, 25 * one):
            settings = SETTINGS.replace(**values, max_cost=cap)
            result, warned = run(store, settings)
            assert result.end == "max cost"
            assert cap <= known_usd(store, result.run) < cap + concurrency * one
            assert f"80% of --max-cost {cap:g} USD are spent" in warned
        asked = provider.count
        again, _ = run(store, settings)
        assert (again.usage, provider.count) == (result.usage, asked), "nothing is left of the cap"
        assert result.usage.requests == asked, "every request that was answered is in the bill"


def test_a_reply_without_counts_does_not_lift_the_cap(
    tmp_path: Path, provider: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = provider.reply

    def reply(body: dict[str, Any], text: Any) -> dict[str, Any]:
        return whole(body, text) | ({"usage": None} if provider.count == 3 else {})

    monkeypatch.setattr(provider, "reply", reply)
    one = INPUT_USD + OUTPUT_USD
    settings = SETTINGS.replace(model="openai/gpt-4o", concurrency=2, max_cost=20 * one)
    with Store.open(tmp_path) as store:
        result, warned = run(store, settings)
        assert result.usage.cost_usd is None
        assert 20 * one <= known_usd(store, result.run) < 22 * one
        assert "what some replies cost is not known, so --max-cost is kept for the others only" in warned
        asked = provider.count
        run(store, settings)
        assert provider.count == asked, "nor does it in a later session"
