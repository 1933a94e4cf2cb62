"""Analyst and generator may be different models: each is asked, paid for and given up on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from learn.tiny_run import InProcess
from models.common import FakeTime
from models.servers import SERVER_ERROR, AnthropicServer, Fault, OpenAIServer
from tiny_target import TINY, tiny_task

from opsmith.learn.ask import Asking, HaltedError, UnjudgedError, group_samples
from opsmith.learn.session import FAILURES, RunSession
from opsmith.models import Message
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.openai import OpenAIModel
from opsmith.models.roles import ANALYST, RoleModels
from opsmith.models.sdk import Endpoint
from opsmith.records import Boundary, Usage
from opsmith.report.spent import spent_of
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import PROPOSER, RunInfo, SampleKey, prompt_rows, run_rows

MESSAGES = Message("system", "Suggest one thing."), Message("user", "program: x")
SETTINGS = Settings(concurrency=4)
Work = Callable[[RunSession, Callable[[int, str], Awaitable[str]]], Awaitable[None]]


def work_on(folder: Path, own: str, other: str, work: Work) -> RunSession:
    """A session of two models; `work` asks them by the number of a sample and an agent's name."""

    async def go() -> RunSession:
        retry = FakeTime().retry(attempts=1)
        models = RoleModels(
            OpenAIModel(Endpoint("openai/gpt-4o", "gpt-4o", own, "key", "openai"), retry),
            {ANALYST: AnthropicModel(Endpoint("anthropic/m", "claude-3-5-sonnet", other, "key", "anthropic"), retry)},
        )
        session = RunSession("r", SETTINGS, TINY, models, InProcess(), store, lambda _: None, Usage())
        session.running.set()
        keys = [SampleKey("r", 0, "sum_0", 1.0, number) for number in range(3 * FAILURES)]
        asking = Asking(session, group_samples(keys, 1), {}, dict.fromkeys(keys, 0), 1)
        try:
            await work(session, lambda at, agent: asking.request_text(keys[at], agent, MESSAGES, prompt))
        finally:
            await models.close()
        return session

    prompt, rows = prompt_rows(MESSAGES)
    info = RunInfo("r", "identity", "openai/gpt-4o", True, "tiny", 0, {}, {})
    with Store.open(folder) as store:
        store.put([*run_rows(info, [tiny_task("sum_0", "x y +")]), *rows]).result()
        return asyncio.run(go())


def test_each_agent_asks_the_model_of_its_role_and_all_is_counted(tmp_path: Path) -> None:
    async def work(session: RunSession, ask: Callable[[int, str], Awaitable[str]]) -> None:
        assert await ask(0, ANALYST) == "from anthropic"
        assert await ask(0, PROPOSER) == "from openai"
        assert await ask(0, "repair-1") == "from openai"
        usage = session.store.sum_usage("r", ANALYST)
        assert (usage.requests, usage.output_tokens) == (1, 10)
        by_model = spent_of(session.store, "r").by["model"]
        assert {name: usage.requests for name, usage in by_model.items()} == {
            "claude-3-5-sonnet-20250514": 1,
            "gpt-4o-2024-11-20": 2,
        }
        [calls] = [detail.calls for detail in [session.store.find_sample("r", SampleKey("r", 0, "sum_0", 1.0, 0).id)]]
        assert {call.agent: call.reply.model.partition("-")[0] for call in calls} == {
            ANALYST: "claude",
            PROPOSER: "gpt",
            "repair-1": "gpt",
        }

    with OpenAIServer("from openai") as own, AnthropicServer("from anthropic") as other:
        session = work_on(tmp_path, own.url, other.url, work)
    assert (own.count, other.count) == (2, 1)
    assert session.spent.requests == 3
    assert session.spent.cost_usd is not None
    assert session.known_usd == pytest.approx(session.spent.cost_usd)


def test_an_analyst_that_fails_ends_the_session_though_the_generator_answers(tmp_path: Path) -> None:
    failures: list[UnjudgedError] = []

    async def work(session: RunSession, ask: Callable[[int, str], Awaitable[str]]) -> None:
        for at in range(FAILURES):
            assert not session.halt
            assert await ask(at, PROPOSER) == "ok"
            with pytest.raises(UnjudgedError) as failure:
                await ask(at, ANALYST)
            failures.append(failure.value)
        with pytest.raises(HaltedError):
            await ask(FAILURES, PROPOSER)

    with OpenAIServer("ok") as own, AnthropicServer(SERVER_ERROR) as other:
        session = work_on(tmp_path, own.url, other.url, work)
    assert session.halt == "provider"
    assert "anthropic/m" in str(session.error)
    assert {failure.charged_to for failure in failures} == {Boundary.PROVIDER}


def test_an_analyst_that_never_answers_ends_a_new_run_before_more_is_paid_for(tmp_path: Path) -> None:
    def silent(body: dict[str, Any]) -> dict[str, Any] | Fault:
        answer = AnthropicServer().reply(body, "x")
        return answer | {"content": [], "stop_reason": "refusal"}

    async def work(session: RunSession, ask: Callable[[int, str], Awaitable[str]]) -> None:
        for at in range(FAILURES):
            assert await ask(at, PROPOSER) == "ok"
            with pytest.raises(UnjudgedError):
                await ask(at, ANALYST)

    with OpenAIServer("ok") as own, AnthropicServer(silent) as other:
        session = work_on(tmp_path, own.url, other.url, work)
    assert "anthropic/m: none of the first 10 replies holds an answer" in str(session.error)
