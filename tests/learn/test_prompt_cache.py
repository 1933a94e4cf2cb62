"""What a round's input costs at a provider that keeps prompts, measured on a server that models its cache."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from models.servers import AnthropicServer, Fault
from tiny_run import TASKS, InProcess, TinyModel

from opsmith.errors import ProviderError
from opsmith.learn import ask
from opsmith.learn.events import SampleJudged
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.models.table import get_model
from opsmith.models.tokens import estimate_tokens
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks

LATENCY_S = 0.3  # the others must arrive within it: a loaded machine is slow
SETTINGS = Settings(
    model="anthropic/m", samples=24, temperatures=(1.0,), max_rounds=1, agents="single", concurrency=8, completions=1
)


class Cache:
    """The protocol's rules: what is marked is kept once its request has begun to be answered, from 1024 tokens on."""

    def __init__(self) -> None:
        self.kept: dict[str, float] = {}  # until when it is not there yet
        self.written: list[str] = []
        self.units = 0.0  # of input tokens, by the provider's prices for writing and reading

    def __call__(self, body: dict[str, Any]) -> Fault:
        [system] = body["system"]
        [turn] = body["messages"]
        assert (body["cache_control"], system["cache_control"]) == ({"type": "ephemeral"}, {"type": "ephemeral"})
        marks = [system["text"], system["text"] + turn["content"]]
        now = time.monotonic()
        read = max([mark for mark in marks if self.kept.get(mark, now + 1) <= now], key=len, default="")
        for mark in marks:
            if len(mark) > len(read) and estimate_tokens(mark) >= 1024:
                self.written.append(mark)
                self.kept.setdefault(mark, now + LATENCY_S)
        cached, whole = estimate_tokens(read), estimate_tokens(marks[-1])
        self.units += 0.1 * cached + 1.25 * (whole - cached)
        usage = {"input_tokens": 0, "cache_read_input_tokens": cached, "cache_creation_input_tokens": whole - cached}
        content = [{"type": "text", "text": "I cannot."}]
        reply = {"model": "m", "content": content, "stop_reason": "end_turn", "usage": usage | {"output_tokens": 3}}
        return Fault(200, reply, delay_s=LATENCY_S)


def spent(folder: Path) -> Cache:
    cache, tasks = Cache(), load_tasks(["index_0", "bmm_0", "rope_0"])
    with AnthropicServer(cache) as server, Store.open(folder) as store:
        settings = SETTINGS.replace(base_url=server.url)
        result = improve(tasks, get_model(settings), settings, store, judge=InProcess())
        assert result.usage.requests == server.count == 72
        assert result.usage.cached_tokens > 0
    return cache


def test_each_prompt_is_written_to_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = spent(tmp_path / "a")
    assert len(ahead.written) == len(set(ahead.written)) == 1 + 3, "the system prompt, and each task's whole one"
    monkeypatch.setattr(ask, "keeps_prompt", lambda model, messages: False)
    together = spent(tmp_path / "b")
    print(f"input, in units of one token: {ahead.units:.0f} with the first ahead, {together.units:.0f} all at once")
    assert len(together.written) > 4
    assert ahead.units < together.units


class Hanging(TinyModel):
    """A provider that keeps prompts and never answers the first request."""

    caches_from: int | None = 0

    async def complete(self, request: Request) -> Reply:
        if not self.asked:
            self.asked.append(request)
            await asyncio.sleep(2.0)
            raise ProviderError("no answer within 2 s")
        return await super().complete(request)


def test_nobody_waits_for_ever_for_the_one_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "PATIENCE_S", 0.1)
    settings = SETTINGS.replace(model="tiny", completions=5)
    model, seen = Hanging(), []
    with Store.open(tmp_path) as store:
        result = improve(
            TASKS[:2],
            model,
            settings,
            store,
            judge=InProcess(),
            on_event=lambda event: seen.append(event) if isinstance(event, SampleJudged) else None,
        )
        assert store.sample_count(result.run) == 2 * 24 - 5
    assert [event.problem != "" for event in seen] == [False] * 43 + [True] * 5, "the one ahead came last"
