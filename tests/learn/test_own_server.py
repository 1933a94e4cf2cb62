"""A run at a server of one's own: prompts fit its window as it counts, its price holds, what it says is told rightly."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from models.serial_server import PER_ESTIMATE, SerialServer
from models.servers import OpenAIServer
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.agents.reply import CUT_SHORT, REPEATED
from opsmith.learn.events import Event, Warned
from opsmith.learn.identity import run_info
from opsmith.learn.loop import improve
from opsmith.models import Message, Reply, Request
from opsmith.models.roles import RoleModels
from opsmith.models.table import get_model
from opsmith.records import Usage
from opsmith.report.closing import closing_lines
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.spending import known_usd, measure_estimates
from opsmith.targets import get_target

OWN = SETTINGS.replace(model="openai/m", base_url="http://127.0.0.1:1/v1", agents="single")


class CountingModel(TinyModel):
    """Its tokens are more than those that we estimate, and it refuses what does not fit its window."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window, self.longest = window, 0

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        tokens = int(PER_ESTIMATE * reply.usage.input_tokens)
        self.longest = max(self.longest, tokens + request.max_tokens)
        return Reply(reply.texts, Usage(1, tokens, 5), reply.model, reply.finish)


def run(store: Store, settings: Settings, model: Any, on_event: Any = None) -> RunResult:
    return improve(TASKS, model, settings, store, judge=InProcess(), on_event=on_event)


def test_prompts_fit_a_window_as_the_server_counts_it_from_the_second_round_on(tmp_path: Path) -> None:
    events: list[Event] = []
    model = CountingModel(300)
    settings = OWN.replace(context_window=300, max_tokens=10)
    with Store.open(tmp_path) as store:
        result = run(store, settings, model, events.append)
        rounds = [info for info, _ in store.read_rounds(result.run)]
        fits = [info.fit for info in rounds]
        assert [ratio > 1.4 for ratio in measure_estimates(store, result.run, 0)] == [True] * len(TASKS)
    assert all(fit is not None and fit.window == 300 for fit in fits)
    assert fits[0] is not None
    assert fits[0].factor == 1.0, "nothing was counted yet"
    assert all(fit is not None and 1.4 < fit.factor <= PER_ESTIMATE for fit in fits[1:])
    assert any(fit is not None and fit.left_out for fit in fits), "what was left out is stored"
    assert model.longest <= 300
    said = [event.message for event in events if isinstance(event, Warned)]
    assert any("left out of prompts to fit 300 tokens, the easiest first" in message for message in said)


def test_a_prompt_that_cannot_fit_without_demonstrations_is_said(tmp_path: Path) -> None:
    events: list[Event] = []
    with Store.open(tmp_path) as store:
        run(store, OWN.replace(context_window=20, max_rounds=1), TinyModel(), events.append)
    said = [event.message for event in events if isinstance(event, Warned)]
    assert any("exceed the context window of 20" in message for message in said)


def test_a_window_names_another_run_and_a_price_does_not() -> None:
    def name(settings: Settings) -> str:
        model = RoleModels(TinyModel())
        return run_info(TASKS, [], None, model, get_target(TASKS[0].target), settings).id

    assert name(OWN) == name(OWN.replace(price_in=1.0, price_out=2.0))
    assert name(OWN) != name(OWN.replace(context_window=8192))


def test_a_stated_price_holds_the_limit_of_money(tmp_path: Path) -> None:
    with OpenAIServer("ok") as server, Store.open(tmp_path) as store:
        settings = OWN.replace(base_url=server.url, price_in=1e4, price_out=0.0, max_cost=5.0)  # 1 USD a request
        result = run(store, settings, get_model(settings))
        assert (result.finished, server.count) == (False, known_usd(store, result.run))
    assert 5 <= server.count <= 5 + SETTINGS.provider.concurrency


def say_length(text: str) -> Any:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        choices = [
            {"message": {"content": text + "!" * place}, "finish_reason": "length"} for place in range(body.get("n", 1))
        ]
        return {
            "model": "m",
            "choices": choices,
            "usage": {"prompt_tokens": 9, "completion_tokens": 160 * len(choices)},
        }

    return answer


@pytest.mark.parametrize(
    ("text", "completions", "where", "words"),
    [
        ("Let me think.", 1, CUT_SHORT, "it ran out of tokens after 160"),
        ("Let me think.", 2, CUT_SHORT, ", its share by length of 2 completions"),
        (
            "Let me think. " + "And then E1; " * 30,
            1,
            REPEATED,
            "it says 'And then E1;' over and over and ran out of tok",
        ),
    ],
)
def test_what_a_cut_reply_is_told(tmp_path: Path, text: str, completions: int, where: str, words: str) -> None:
    with OpenAIServer(say_length(text)) as server, Store.open(tmp_path) as store:
        settings = OWN.replace(
            base_url=server.url, samples=2, temperatures=(1.0,), max_rounds=1, completions=completions
        )
        result = run(store, settings, get_model(settings))
        [first, *_] = store.list_samples(result.run)
        detail = store.find_sample(result.run, first.id)
    [error] = detail.candidates[-1].verdict.errors
    assert (error.where, detail.calls[0].reply.shared) == (where, completions if completions > 1 else 0)
    assert words in error.given
    is_cut = where == CUT_SHORT
    assert (result.cut_short, result.repeated) == ((12, 0) if is_cut else (0, 12))
    assert any("said the same over and over" in line for line in closing_lines(result)) != is_cut


def test_the_program_and_its_guardian_are_asked_in_turns_of_many(tmp_path: Path) -> None:
    """A server's prefix cache holds one system prompt: it is worth little where every second request has another one."""

    def answer(body: dict[str, Any]) -> str:
        return TinyModel().answer(
            Request(tuple(Message(m["role"], m["content"]) for m in body["messages"]), seed=body["seed"])
        )

    with SerialServer(answer, seconds=0.002) as server, Store.open(tmp_path) as store:
        settings = OWN.replace(base_url=server.url, agents="agent", guardian="llm", max_rounds=1, concurrency=16)
        run(store, settings, get_model(settings))
        systems = [body["messages"][0]["content"] for body in server.requests]
    changes = sum(one != following for one, following in itertools.pairwise(systems))
    print(f"{len(systems)} requests, {changes} changes of the system prompt")
    assert len(set(systems)) == 2
    assert changes <= len(systems) / 4
