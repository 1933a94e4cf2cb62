"""Replies without an answer: paid for and booked, unjudged and charged to the provider, asked for again while it helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models.servers import AnthropicServer, OpenAIServer
from tiny_run import TASKS, InProcess

from opsmith.errors import ProviderError
from opsmith.learn.loop import improve
from opsmith.models.table import get_model
from opsmith.report.samples import conversation_text, sample_text
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.spending import usage_by

pytest.importorskip("openai", reason="the providers extra is not installed")

GOOD = "impl: x y + z +"  # of the first task
STATED = {"prompt_tokens": 100, "completion_tokens": 10, "input_tokens": 100, "output_tokens": 10}
Fields = dict[str, Any]


def choice(content: object, ending: object = "stop", **more: object) -> Fields:
    return {"message": {"content": content, **more}, "finish_reason": ending}


def choices(*given: object, usage: object = STATED) -> Fields:
    return {"model": "m", "choices": list(given), "usage": usage}


def blocks(*content: object, stop: object = "end_turn", usage: object = STATED) -> Fields:
    return {"model": "m", "content": list(content), "stop_reason": stop, "usage": usage}


NO_ANSWERS: dict[str, tuple[str, Fields]] = {
    "a number": ("openai", choices(choice(5))),
    "null": ("openai", choices(choice(None))),
    "an empty list": ("openai", choices(choice([]))),
    "filtered": ("openai", choices(choice(None, "content_filter"))),
    "filtered half-way": ("openai", choices(choice(GOOD[:8], "content_filter"))),
    "refused": ("openai", choices(choice(None, refusal="I cannot."))),
    "tools": ("openai", choices(choice("", "tool_calls", tool_calls=[{"id": "1"}]))),
    "no message": ("openai", choices({})),
    "no choice": ("openai", choices(None)),
    "all reasoning": ("openai", choices(choice("", "length", reasoning_content="hm " * 99))),
    "no blocks": ("anthropic", blocks()),
    "thinking alone": ("anthropic", blocks({"type": "thinking", "thinking": "hm"}, stop="max_tokens")),
    "a tool alone": ("anthropic", blocks({"type": "tool_use", "name": "f", "input": {}}, stop="tool_use")),
    "text of a number": ("anthropic", blocks({"type": "text", "text": 5})),
    "a refusal": ("anthropic", blocks({"type": "text", "text": "I"}, stop="refusal")),
}
SERVERS = {"openai": OpenAIServer, "anthropic": AnthropicServer}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in SERVERS:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-none")


def run(store: Store, server: OpenAIServer | AnthropicServer, **settings: object) -> RunResult:
    provider = "openai" if isinstance(server, OpenAIServer) else "anthropic"
    values: Fields = {"samples": 8, "temperatures": (1.0,), "agents": "single", "max_rounds": 1, "concurrency": 20}
    chosen = Settings(model=f"{provider}/m", base_url=server.url, **(values | settings))
    return improve(TASKS[:2], get_model(chosen), chosen, store, judge=InProcess())


def every(number: int, odd: Fields) -> Callable[[Fields], Any]:
    """Every so many requests are answered by `odd`, all others by a program."""
    asked = iter(range(10**6))
    return lambda body: odd if next(asked) % number == 0 else GOOD


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_what_is_no_answer_is_booked_and_charged_to_the_provider_and_never_a_wrong_program(
    tmp_path: Path, kind: str
) -> None:
    provider, odd = NO_ANSWERS[kind]
    with SERVERS[provider](every(4, odd)) as server, Store.open(tmp_path) as store:
        result = run(store, server)
        rows, failures = list(store.list_samples(result.run)), store.read_failures(result.run, 0)
        assert (server.count, result.usage.requests, len(rows), len(failures)) == (16, 16, 12, 4)
        assert {row.stage.name for row in rows if row.stage} == {"MATCH"}, "no verdict on what no model wrote"
        assert {charged for _, charged, _ in failures} == {"provider"}
        assert all(f"{provider}/m: given a reply" in message and "; try: " in message for _, _, message in failures)
        assert result.usage.input_tokens == 16 * 100
        assert usage_by(store, result.run, "agent")["unanswered-1"].requests == 4


def test_an_empty_text_that_the_model_ended_is_an_answer_without_a_program(tmp_path: Path) -> None:
    with OpenAIServer(every(4, choices(choice("")))) as server, Store.open(tmp_path) as store:
        result = run(store, server)
        assert Counter(row.stage.name for row in store.list_samples(result.run) if row.stage) == {
            "MATCH": 12,
            "FORMAT": 4,
        }


def test_a_server_that_was_mended_is_asked_again_by_the_same_command(tmp_path: Path) -> None:
    answers: list[Any] = [choices(choice(5))]
    with OpenAIServer(lambda body: answers[0]) as server, Store.open(tmp_path) as store:
        for times in (1, 2):
            with pytest.raises(ProviderError, match="no sample could be judged; last: openai/m: given a reply without"):
                run(store, server)
            assert store.list_runs()[0].usage.requests == 16 * times, "each is paid for and booked"
        answers[0] = GOOD
        result = run(store, server)
        [sample] = [store.find_sample(result.run, row.id) for row in store.list_samples(result.run)][:1]
        assert (result.usage.requests, store.sample_count(result.run), server.count) == (48, 16, 48)
        shown = "\n".join([*sample_text(sample, TASKS[0]), *conversation_text(sample)])
        assert "--- unanswered-1: reply (no text: content is a number) ---" in shown
        assert "--- left unjudged ---\nopenai/m: given a reply without text" in shown


def test_a_later_session_asks_only_for_what_has_no_answer(tmp_path: Path) -> None:
    with OpenAIServer(every(4, choices(choice(None)))) as server, Store.open(tmp_path) as store:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("opsmith.learn.functional.FunctionalPhase._end_round", lambda *_: _killed())
            with pytest.raises(KeyboardInterrupt):
                run(store, server)
        result = run(store, server)
        assert server.count == 16 + 4
        assert store.sample_count(result.run) == 16 - 1, "of these four again one had none"


def _killed() -> None:
    raise KeyboardInterrupt


def test_a_choice_without_an_answer_takes_nothing_from_the_others_of_its_request(tmp_path: Path) -> None:
    def answer(body: Fields) -> Fields:
        good = [choice(GOOD) for _ in range(body["n"])]
        return choices(*[choice(None, "content_filter"), *good][: body["n"]])

    with OpenAIServer(answer) as server, Store.open(tmp_path) as store:
        result = run(store, server, completions=4)
        assert (server.count, result.usage.requests) == (4, 4)
        assert (store.sample_count(result.run), len(store.read_failures(result.run, 0))) == (12, 4)
        assert (result.usage.output_tokens, result.input_tokens) == (4 * 10, 100), (
            "an answer has the bill of its prompt"
        )
        assert result.solved == 1


def test_a_guardian_or_a_turn_of_repair_without_an_answer_leaves_its_sample_unjudged(tmp_path: Path) -> None:
    def answer(body: Fields) -> Any:
        is_first = len(body["messages"]) == 2 and "input_impl:" not in body["messages"][1]["content"]
        return "impl: x x +" if is_first else choices(choice(None))

    for folder, settings in [("guardian", {"agents": "agent", "guardian": "llm"}), ("repair", {"repair": 1})]:
        with OpenAIServer(answer) as server, Store.open(tmp_path / folder) as store:
            with pytest.raises(ProviderError, match="no sample could be judged"):
                run(store, server, **settings)
            name = store.list_runs()[0].info.id
            assert store.read_tallies(name) == []
            assert {(charged, "given a reply" in text) for _, charged, text in store.read_failures(name, 0)} == {
                ("provider", True)
            }
            assert server.count == 32


def test_a_new_run_ends_when_none_of_its_first_replies_holds_an_answer_and_goes_on_when_told_to(
    tmp_path: Path,
) -> None:
    with OpenAIServer(choices(choice("", "length"))) as server, Store.open(tmp_path) as store:
        with pytest.raises(ProviderError, match=r"none of the first 10 replies holds an answer.*a larger max_tokens"):
            run(store, server, samples=100, concurrency=4)
        assert server.count < 30
        with pytest.raises(ProviderError, match="no sample could be judged"):
            run(store, server, samples=100, concurrency=4)
        assert server.count >= 200, "whoever starts it again wants to go on"
