"""Both phases over both SDKs: the analyst at one provider sees pictures, the generator at the other one writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models.common import FakeTime
from models.drawings import draw_png, write_png
from models.servers import SERVER_ERROR, AnthropicServer, Fault, OpenAIServer
from models.test_pictures import pictures_of
from optimised_run import LAYERS, SETTINGS, TASKS, WRONG, WordCounter, answer, count_layers
from tiny_run import InProcess

from opsmith.agents.analysis import read_analysis_prompt
from opsmith.agents.generation import read_generation_prompt
from opsmith.errors import ProviderError
from opsmith.learn.loop import improve
from opsmith.models import Message
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.openai import OpenAIModel
from opsmith.models.parts import drop_pictures
from opsmith.models.roles import ANALYST, RoleModels
from opsmith.models.sdk import Endpoint
from opsmith.profiling.profiler import ProfileSubject
from opsmith.records import Candidate, Outcome, ProfileReport, Task
from opsmith.report.spent import spent_of
from opsmith.results.result import RunResult
from opsmith.store import Store
from opsmith.store.rows import OPTIMISATION

PICTURE = draw_png(shade=77)


class Screenshots:
    """A profiler that shows a text and a picture of every program."""

    def explain_lacks(self, task: Task) -> tuple[str, ...]:
        return ()

    async def make_profiles(self, subject: ProfileSubject, warn: Callable[[str], None]) -> list[ProfileReport]:
        words = f"words: {len(subject.source.split())}, each of which costs 10 cycles"
        return [ProfileReport("count", "text/plain", words), ProfileReport("screen", "image/png", PICTURE.data)]


class Script:
    """What a server answers, whichever protocol it speaks; it remembers what it was asked."""

    def __init__(self) -> None:
        self.analysed = self.generated = 0
        self._choices = itertools.count(1)

    def __call__(self, body: dict[str, Any]) -> str:
        turns = drop_pictures(body)["messages"]
        messages = [Message(turn["role"], turn["content"]) for turn in turns]
        self.analysed += read_analysis_prompt(messages) is not None
        self.generated += read_generation_prompt(messages) is not None
        return answer(messages, next(self._choices))


def run(store: Store, own: OpenAIServer | AnthropicServer, other: OpenAIServer | AnthropicServer) -> RunResult:
    models = RoleModels(make_model(own), {ANALYST: make_model(other)})
    return improve(TASKS, models, SETTINGS, store, judge=InProcess(), measurer=WordCounter(), profiler=Screenshots())


def make_model(server: OpenAIServer | AnthropicServer) -> OpenAIModel | AnthropicModel:
    retry = FakeTime().retry(attempts=1)
    if isinstance(server, OpenAIServer):
        return OpenAIModel(Endpoint("openai/gpt-4o", "gpt-4o", server.url, "key", "openai"), retry)
    name = "claude-3-5-sonnet"
    return AnthropicModel(Endpoint(f"anthropic/{name}", name, server.url, "key", "anthropic"), retry)


BOTH_WAYS = pytest.mark.parametrize(
    ("own_type", "other_type"), [(OpenAIServer, AnthropicServer), (AnthropicServer, OpenAIServer)]
)


@BOTH_WAYS
def test_one_suggests_from_pictures_the_other_writes_and_what_is_wrong_is_mended(
    tmp_path: Path, own_type: type, other_type: type
) -> None:
    writer, analyst = Script(), Script()
    with own_type(writer) as own, other_type(analyst) as other, Store.open(tmp_path) as store:
        result = run(store, own, other)
        steps, bill = store.read_steps(result.run), spent_of(store, result.run)
        rounds = [info for info, _ in store.read_rounds(result.run)]
        details = [store.find_sample(result.run, step.sample) for step in steps]
    assert result.solved == len(TASKS)
    assert (writer.analysed, analyst.generated) == (0, 0)
    assert other.count == analyst.analysed == len(steps) == 2 * 2 * SETTINGS.optimisation.attempts
    assert {tuple(pictures_of(body)) for body in other.requests} == {(("image/png", write_png(40, 30, 77)),)}
    assert not any(pictures_of(body) for body in own.requests)
    assert bill.pictures == other.count
    assert [usage.requests for usage in sorted(bill.by["model"].values(), key=lambda usage: usage.requests)] == sorted(
        [own.count, other.count]
    )
    assert bill.total.cost_usd is not None
    assert all(step.suggestion is not None for step in steps)
    wrong = [c for detail in details for c in detail.candidates if c.source is not None and c.source.strip() == WRONG]
    assert wrong
    assert {candidate.verdict.outcome for candidate in wrong} == {Outcome.REFUSED}
    assert {step.outcome for step in steps} == {Outcome.PASSED}, "a wrong one went back with its findings"
    assert any("repair-1" in {call.agent for call in detail.calls} for detail in details)
    parents = {name for info in rounds if info.phase == OPTIMISATION for _, name in info.demonstrations}
    assert Candidate(WRONG).id not in parents
    assert min(count_layers(step.source or "") for step in steps) < LAYERS


@BOTH_WAYS
def test_an_analyst_without_eyes_reads_the_texts(tmp_path: Path, own_type: type, other_type: type) -> None:
    script = Script()

    def blind(body: dict[str, Any]) -> str | Fault:
        if pictures_of(body):
            return Fault(400, {"error": {"message": "This model does not support image input.", "type": "invalid"}})
        return script(body)

    with own_type(Script()) as own, other_type(blind) as other, Store.open(tmp_path) as store:
        result = run(store, own, other)
        steps, bill = store.read_steps(result.run), spent_of(store, result.run)
    assert result.finished
    assert all(step.suggestion is not None for step in steps)
    assert bill.pictures == 0


def test_a_run_whose_analyst_fails_stops_and_goes_on_where_it_was(tmp_path: Path) -> None:
    settings = SETTINGS
    with OpenAIServer(Script()) as own, AnthropicServer(SERVER_ERROR) as down, Store.open(tmp_path) as store:
        with pytest.raises(ProviderError):
            run(store, own, down)
        solved_by = own.count
        [info] = [row.info for row in store.list_runs()]
        failures = store.read_failures(info.id, 1)
        assert {charged for _, charged, _ in failures} == {"provider"}
        with AnthropicServer(Script()) as up:
            result = run(store, own, up)
    assert result.run == info.id
    assert result.finished
    assert up.count == 2 * 2 * settings.optimisation.attempts
    assert own.count > solved_by
