"""When the next request may start: how many at once, how fast, and what closes the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from opsmith.config import resolve_settings
from opsmith.errors import ProviderError, UsageError
from opsmith.models import Request
from opsmith.models.attempt import Failure, Sent
from opsmith.models.limits import BREAK, PROBES, DownError, Gate, read_exhausted
from opsmith.models.table import get_model
from opsmith.settings import Settings

from .common import ASKED, FakeTime
from .servers import SERVER_ERROR, Fault, OpenAIServer, too_many

SERVED = Sent("ok")
BUSY = Failure("slow down", status=429)


def gate(clock: FakeTime, limit: int = 8, **limits: int) -> Gate:
    return Gate(limit, clock=lambda: clock.now, sleep=clock.sleep, **limits)


def told(made: Gate, clock: FakeTime, *results: Sent[str] | Failure, seconds: float = 1.0) -> None:
    """The gate is told of attempts, one after the other, each of so many seconds."""
    for result in results:
        began = clock.now
        clock.now += seconds
        made.note_result(began, 0, result)


async def most_at_once(made: Gate, requests: int) -> int:
    running = most = 0

    async def one() -> None:
        nonlocal running, most
        async with made.hold_slot():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(one() for _ in range(requests)))
    return most


def test_no_more_requests_run_at_once_than_the_limit_says() -> None:
    assert asyncio.run(most_at_once(gate(FakeTime()), 50)) == 8


def test_too_many_requests_lower_the_number_once_for_all_that_ran_together_and_replies_raise_it() -> None:
    clock = FakeTime()
    made = gate(clock)
    for _ in range(5):  # all sent at the same moment
        made.note_result(0.0, 0, BUSY)
        clock.now += 0.1
    assert made.allowed == pytest.approx(5.6)
    assert asyncio.run(most_at_once(made, 50)) == 5
    told(made, clock, BUSY)
    assert made.allowed == pytest.approx(3.92)
    told(made, clock, *[SERVED] * 40)
    assert made.allowed == 8


def test_replies_that_grow_slow_lower_the_number() -> None:
    clock = FakeTime()
    made = gate(clock)
    told(made, clock, *[SERVED] * 20, seconds=1.0)
    assert made.allowed == 8
    told(made, clock, *[SERVED] * 16, seconds=3.0)
    assert made.allowed < 8


def test_retry_after_holds_back_every_request() -> None:
    clock = FakeTime()
    made = gate(clock)
    told(made, clock, Failure("busy", status=429, retry_after=30.0))

    async def go() -> float:
        async with made.hold_slot():
            return clock.now

    assert asyncio.run(go()) == pytest.approx(31.0)


@pytest.mark.parametrize(("limits", "tokens"), [({"requests_per_minute": 60}, 0), ({"tokens_per_minute": 6000}, 100)])
def test_a_rate_is_kept_after_the_first_burst(limits: dict[str, int], tokens: int) -> None:
    clock = FakeTime()
    made = gate(clock, 64, **limits)

    async def go() -> None:
        for _ in range(66):
            async with made.hold_slot(tokens):
                pass

    asyncio.run(go())
    assert clock.now == pytest.approx(60.0, abs=0.5)  # one a second; six of them at once


def test_tokens_that_were_not_used_come_back() -> None:
    clock = FakeTime()
    made = gate(clock, 64, tokens_per_minute=6000)

    async def go() -> None:
        for _ in range(10):
            async with made.hold_slot(600):
                pass
            made.note_result(clock.now, 600, Sent("ok", 60))

    asyncio.run(go())
    assert clock.now < 6.0  # 600 tokens used in all


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "250ms"}, 0.25),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "1970-01-01T00:01:40Z",
            },
            90.0,
        ),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "1999-01-01T00:01:40Z",
                "date": "Fri, 01 Jan 1999 00:01:10 GMT",
            },
            30.0,
        ),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "inf"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1300000090000",
                "date": "Sun, 13 Mar 2011 07:06:40 GMT",
            },
            90.0,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1300000090"}, 1300000080.0),
    ],
)
def test_rate_limit_headers_are_read_in_both_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert read_exhausted(headers, now=lambda: 10.0) == seconds


def asked(server: OpenAIServer, requests: int, clock: FakeTime, limit: int = 16) -> list[str]:
    """What became of so many requests at once: the text, or the error."""

    async def one(ask: Callable[[Request], Awaitable[object]]) -> str:
        try:
            await ask(ASKED)
        except ProviderError as error:
            return str(error)
        return "ok"

    async def go() -> list[str]:
        model = get_model(Settings(model="openai/m", base_url=server.url, concurrency=limit), retry=clock.retry())
        try:
            return list(await asyncio.gather(*(one(model.complete) for _ in range(requests))))
        finally:
            await model.close()

    return asyncio.run(go())


def test_a_provider_that_always_fails_alike_is_given_up_after_a_few_single_tries() -> None:
    with OpenAIServer(SERVER_ERROR) as server:
        found = asked(server, 200, FakeTime())
    assert all("HTTP 500: internal error" in text for text in found)
    assert any("not sent again: the provider is down" in text for text in found)
    assert server.count <= 16 + BREAK + PROBES + 1


def test_a_provider_that_recovers_serves_everybody() -> None:
    with OpenAIServer("ok", faults=[SERVER_ERROR] * 19) as server:
        assert asked(server, 60, FakeTime()) == ["ok"] * 60


def test_different_failures_do_not_break_the_circuit() -> None:
    faults = [Fault(500, {"error": {"message": f"error {i}"}}) for i in range(40)]
    with OpenAIServer("ok", faults=faults) as server:
        assert asked(server, 60, FakeTime()) == ["ok"] * 60
    assert server.count == 100


def test_being_told_to_slow_down_for_long_is_not_being_down() -> None:
    with OpenAIServer("ok", faults=[too_many()] * 60) as server:
        assert asked(server, 60, FakeTime()) == ["ok"] * 60


def test_a_server_that_asks_for_a_day_is_believed_once_and_asked_nothing_more() -> None:
    clock = FakeTime()
    with OpenAIServer(too_many("86400")) as server:
        found = asked(server, 200, clock)
    assert all("the server asks to wait 86400 s" in text for text in found)
    assert any("not sent again: the server asks for too long a wait" in text for text in found)
    assert server.count <= 16
    assert clock.slept == []


def test_a_limit_that_is_reset_in_hours_closes_the_gate_for_ten_minutes_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeTime()
    made = gate(clock)
    used_up = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "8h0m0s"}
    told(made, clock, Sent("ok", headers=used_up), Sent("ok", headers=used_up))

    async def go() -> float:
        async with made.hold_slot():
            return clock.now

    assert asyncio.run(go()) == pytest.approx(602.0)
    assert [record.getMessage() for record in caplog.records if record.name == "opsmith.models"] == [
        "the server asks to wait 28800 s: no request starts before 600 s have passed"
    ]


def test_the_deadlines_of_a_request_are_settings() -> None:
    settings = Settings(model="openai/m", request_timeout=0.2, request_deadline=0.3)
    with OpenAIServer(Fault(delay_s=5.0)) as server:

        async def go() -> None:
            model = get_model(settings.replace(base_url=server.url))
            try:
                await model.complete(ASKED)
            finally:
                await model.close()

        with pytest.raises(ProviderError, match=r"no (usable )?answer"):
            asyncio.run(go())
        assert server.count <= 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"request_timeout": 0}, "--request-timeout: given 0; expected greater than 0"),
        ({"request_timeout": 1000}, "--request-deadline: given 900.0; expected a number of seconds from request_time"),
        ({"request_deadline": 10}, r"--request-deadline: given 10; expected .* from request_timeout \(300\) on"),
        ({"request_deadline": float("nan")}, "--request-deadline: given nan"),
        ({"request_deadline": float("inf")}, "--request-deadline: given inf"),
    ],
)
def test_deadlines_that_cannot_be_kept_are_refused(values: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve_settings(None, values)


def outage(made: Gate, clock: FakeTime, requests: int) -> None:
    """So many requests that began now fail one second later, one after the other."""
    began = clock.now
    clock.now += 1.0
    for _ in range(requests):
        made.note_result(began, 0, Failure("reset"))


def test_requests_under_way_are_no_probes_so_that_an_outage_of_a_second_ends_nothing() -> None:
    clock = FakeTime()
    made = gate(clock)
    outage(made, clock, BREAK + 8)

    async def go() -> float:
        async with made.hold_slot():
            return clock.now

    assert asyncio.run(go()) == pytest.approx(2.0)
    told(made, clock, SERVED)
    assert asyncio.run(most_at_once(made, 50)) == 8


def test_each_probe_counts_once_and_being_told_to_slow_down_is_none() -> None:
    clock = FakeTime()
    made = gate(clock)
    outage(made, clock, BREAK)
    clock.now += 1.0
    told(made, clock, *[BUSY] * (2 * PROBES))
    for _ in range(PROBES - 1):
        clock.now += 60.0
        outage(made, clock, 8)
    assert asyncio.run(most_at_once(made, 3)) == 1
    clock.now += 60.0
    outage(made, clock, 1)
    with pytest.raises(DownError):
        asyncio.run(most_at_once(made, 1))


def test_a_reply_to_what_began_before_does_not_open_the_gate_again() -> None:
    clock = FakeTime(now=5.0)
    made = gate(clock)
    outage(made, clock, BREAK)
    made.note_result(4.0, 0, SERVED)
    assert asyncio.run(most_at_once(made, 3)) == 1
    made.note_result(clock.now, 0, Failure("tomorrow", status=429, retry_after=86400.0))
    made.note_result(4.0, 0, SERVED)
    with pytest.raises(DownError):
        asyncio.run(most_at_once(made, 1))
