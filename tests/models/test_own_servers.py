"""Servers of one's own: few requests at once, one system prompt after the other, words where nobody answers, a price."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from dataclasses import replace

import pytest

from opsmith.config import resolve_settings
from opsmith.errors import ProviderError, UsageError
from opsmith.models import Message, Reply, Request
from opsmith.models.attempt import Failure, Sent
from opsmith.models.limits import REFUSED_S, SILENCES, Gate, OwnPace
from opsmith.models.table import get_model
from opsmith.settings import Settings

from .common import ASKED, FakeTime, ask
from .serial_server import SerialServer
from .servers import Fault, OpenAIServer

SERVED = Sent("ok")


def gate(clock: FakeTime, timeout_s: float = 100.0) -> Gate:
    return Gate(16, clock=lambda: clock.now, sleep=clock.sleep, pace=OwnPace("openai/m at http://here", timeout_s))


def serve_one_by_one(made: Gate, clock: FakeTime, replies: int, seconds: float) -> None:
    """So many replies of a server that takes so long for each, with all its places used."""
    began = [clock.now] * int(made.allowed)
    for _ in range(replies):
        clock.now += seconds
        made.note_result(began.pop(0), 0, SERVED)
        began += [clock.now] * (int(made.allowed) - len(began))


async def ask_all(settings: Settings, requests: list[Request]) -> list[Reply | BaseException]:
    model = get_model(settings)
    try:
        return await asyncio.gather(*map(model.complete, requests), return_exceptions=True)
    finally:
        await model.close()


def test_requests_at_once_grow_from_one_while_the_last_one_waits_less_than_half_the_time_out() -> None:
    clock = FakeTime()
    made = gate(clock)
    assert made.allowed == 1
    serve_one_by_one(made, clock, 40, seconds=9.0)
    assert made.allowed == 6, "6 times 9 s is more than 50 s"
    serve_one_by_one(made, clock, 40, seconds=20.0)
    assert made.allowed == 3, "longer prompts lower it before anything times out"
    serve_one_by_one(made, clock, 40, seconds=0.1)
    assert made.allowed == 16


def test_a_server_that_answers_many_at_once_is_asked_more() -> None:
    clock = FakeTime()
    made = gate(clock)
    for _ in range(12):
        began, number = clock.now, int(made.allowed)
        clock.now += 30.0
        for _ in range(number):
            made.note_result(began, 0, SERVED)
    assert made.allowed == 16


def test_a_time_out_halves_the_number_once_for_all_that_were_under_way(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeTime()
    made = gate(clock)
    serve_one_by_one(made, clock, 30, seconds=1.0)
    assert made.allowed == 16
    began = clock.now
    clock.now += 100.0
    for _ in range(16):
        made.note_result(began, 0, Failure("no answer", is_silent=True))
    assert made.allowed == 8
    assert [record.getMessage() for record in caplog.records] == [
        "openai/m at http://here: silent, no answer within 100 s; 8 at once from now on, not 16"
    ]


def test_of_a_serial_servers_generations_hardly_any_is_for_nobody() -> None:
    with SerialServer(seconds=0.04) as server:
        settings = Settings(model="openai/m", base_url=server.url, request_timeout=0.5)
        replies = asyncio.run(ask_all(settings, [ASKED] * 40))
    assert [reply for reply in replies if isinstance(reply, BaseException)] == []
    assert (server.generated, server.for_nobody) == (40, 0)
    assert 1 < server.most_waiting <= 8


def test_nobody_listens_is_said_at_once_and_ends_within_five_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        began = time.monotonic()
        errors = asyncio.run(ask_all(Settings(model="openai/m", base_url=url), [ASKED] * 16))
    assert time.monotonic() - began < 5.0
    assert all(isinstance(error, ProviderError) and "Connect call failed" in str(error) for error in errors)
    assert "check that the server runs and that --base-url is right" in str(errors[-1])
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert url in warning
    assert warning.endswith(f"tried again for {REFUSED_S:.0f} s")


def test_a_server_that_was_there_is_waited_for() -> None:
    clock = FakeTime()
    made = gate(clock)
    serve_one_by_one(made, clock, 1, seconds=1.0)
    for _ in range(5):
        clock.now += 2.0
        made.note_result(clock.now, 0, Failure("refused", sent=False))

    async def go() -> None:
        async with made.hold_slot():
            pass

    asyncio.run(go())


def test_a_server_that_never_says_anything_is_called_silent_and_given_up() -> None:
    with OpenAIServer(Fault(delay_s=30.0)) as server:
        settings = Settings(model="openai/m", base_url=server.url, request_timeout=0.1)
        errors = asyncio.run(ask_all(settings, [ASKED] * 8))
    assert all("silence: no answer within 0 s" in str(error) for error in errors)
    assert "try: a longer --request-timeout" in str(errors[0])
    assert server.count == SILENCES


def test_requests_with_one_system_prompt_follow_each_other() -> None:
    asked = [
        Request((Message("system", f"You are {'AB'[number % 2]}."), Message("user", f"task {number // 4}")))
        for number in range(16)
    ]
    with SerialServer(seconds=0.005) as server:
        asyncio.run(ask_all(Settings(model="openai/m", base_url=server.url, concurrency=1), asked))
        systems = [body["messages"][0]["content"] for body in server.requests]
        prompts = [tuple(message["content"] for message in body["messages"]) for body in server.requests]
    assert count_changes(systems) <= 2, "15 in the order in which they came"
    assert count_changes(prompts) <= len(set(prompts))


def count_changes(entries: list[object]) -> int:
    return sum(one != following for one, following in itertools.pairwise(entries))


def test_a_price_that_is_stated_holds_at_a_server_of_ones_own_alone() -> None:
    priced = Settings(model="openai/m", price_in=2.0, price_out=10.0)
    with OpenAIServer("ok") as server:
        [reply] = asyncio.run(ask_all(priced.replace(base_url=server.url), [ASKED]))
        unknown = ask("openai/m", server.url).usage
    assert isinstance(reply, Reply)
    assert reply.usage == replace(unknown, cost_usd=pytest.approx((100 * 2.0 + 10 * 10.0) / 1e6))
    assert unknown.cost_usd is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"price_in": 1.0}, "--price-out: given None; expected USD for a million tokens, with price_in and price_out"),
        ({"price_out": 1.0}, "--price-out: given 1.0; expected USD for a million tokens, with price_in and price_out"),
        ({"price_in": -1.0, "price_out": 1.0}, "--price-in: given -1.0; expected greater than or equal to 0"),
        ({"context_window": 0}, "--context-window: given 0"),
    ],
)
def test_half_a_price_and_no_window_are_refused(values: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_settings(None, values)
