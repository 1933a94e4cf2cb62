"""When a request is sent again, how long that waits, and what the error at the end says; on both SDKs."""

from __future__ import annotations

import asyncio
import time

import pytest
from clocks import lasts_at_most

from opsmith.errors import ProviderError
from opsmith.models.attempt import Failure, read_retry_after
from opsmith.models.retry import Retry

from .common import CANARY, FakeTime, ask
from .servers import (
    HTML,
    INVALID_JSON,
    OVERLOADED,
    RESET,
    SERVER_ERROR,
    AnthropicServer,
    Fault,
    OpenAIServer,
    too_many,
)

BOTH = pytest.mark.parametrize(("name", "server_type"), [("openai/m", OpenAIServer), ("anthropic/m", AnthropicServer)])


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        Fault(408, {}),
        Fault(409, {"error": {"message": "lock"}}),
        too_many(),
        SERVER_ERROR,
        Fault(503, "upstream connect error", {"content-type": "text/plain"}),
        OVERLOADED,
        RESET,
        INVALID_JSON,
        HTML,
        Fault(body={"error": {"message": "upstream said no", "code": 502}}),
        Fault(body={}),
        Fault(body=[]),
        Fault(body="[" * 100_000),
        Fault(body={"choices": [], "content": "none"}),
        Fault(body=b"\xff\xfe"),
        Fault(body=b"not gzip", headers={"content-encoding": "gzip"}),
    ],
    ids=lambda fault: str(fault)[:60],
)
def test_a_passing_fault_is_retried(name, server_type, fault):
    clock = FakeTime()
    with server_type("ok", faults=[fault, fault]) as server:
        assert ask(name, server.url, retry=clock.retry()).texts == ("ok",)
    assert server.count == 3
    assert clock.slept == [0.5, 1.0]  # half of 1 s, half of 2 s


@BOTH
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_what_cannot_succeed_is_not_retried_and_says_what_to_do(name, server_type, status):
    words = f"Incorrect API key provided: {CANARY}.\x1b[31m See\nthe docs"
    fault = Fault(status, {"error": {"message": words, "type": "invalid_request_error"}})
    with server_type(fault) as server, pytest.raises(ProviderError) as caught:
        ask(name, server.url)
    assert server.count == 1
    error = caught.value
    assert (error.status, error.retryable) == (status, False)
    shown = f"{name} at {server.url}: given HTTP {status}: Incorrect API key provided: [key]. [31m See the docs"
    assert str(error).startswith(f"{shown}, after 1 attempt; expected a completion; try: ")
    assert error.__context__ is None  # an SDK's error would carry the server's words as they were


def test_a_quota_that_is_used_up_is_not_retried():
    used_up = Fault(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}})
    with OpenAIServer(used_up) as server, pytest.raises(ProviderError, match="balance"):
        ask("openai/m", server.url)
    assert server.count == 1


def test_waits_grow_to_the_cap_and_the_attempts_end():
    clock = FakeTime()
    with OpenAIServer(SERVER_ERROR) as server, pytest.raises(ProviderError) as caught:
        ask("openai/m", server.url, retry=clock.retry(attempts=6, cap_s=5.0))
    assert clock.slept == [0.5, 1.0, 2.0, 2.5, 2.5]
    assert server.count == 6
    assert caught.value.retryable
    assert "HTTP 500: internal error, after 6 attempts" in str(caught.value)


def test_retry_after_is_honoured():
    clock = FakeTime()
    with OpenAIServer("ok", faults=[too_many("20"), too_many("0")]) as server:
        ask("openai/m", server.url, retry=clock.retry())
    assert clock.slept == [20.5, 0.5]


@pytest.mark.parametrize(
    ("asked", "shown", "deadline"), [("3600", "3600 s", 1e9), ("1e300", "1e+300 s", 1e9), ("500", "500 s", 400.0)]
)
def test_a_wait_of_more_than_ten_minutes_or_beyond_the_deadline_ends_the_request_at_once(asked, shown, deadline):
    clock = FakeTime()
    with OpenAIServer(too_many(asked)) as server, pytest.raises(ProviderError) as caught:
        ask("openai/m", server.url, retry=clock.retry(deadline_s=deadline, timeout_s=10.0))
    assert (server.count, clock.slept) == (1, [])
    assert f"given HTTP 429: Rate limit reached (the server asks to wait {shown}), after 1 attempt" in str(caught.value)
    assert ("start the same command again after that time" in str(caught.value)) == (deadline > 500)


def test_a_servers_own_clock_says_how_long_its_date_is_away():
    clock = FakeTime()
    headers = {"date": "Sat, 01 Jan 2011 10:00:00 GMT", "retry-after": "Sat, 01 Jan 2011 10:00:20 GMT"}
    with OpenAIServer("ok", faults=[Fault(429, {}, headers), Fault(429, {}, {**headers, "date": "?"})]) as server:
        ask("openai/m", server.url, retry=clock.retry())
    assert clock.slept[0] == 20.5, "our clock would say that this is long past"
    assert clock.slept[1] == 0.5


def test_the_deadline_ends_the_attempts():
    clock = FakeTime()
    with OpenAIServer(too_many("40")) as server, pytest.raises(ProviderError, match="after 3 attempts"):
        ask("openai/m", server.url, retry=clock.retry(deadline_s=100.0))
    assert clock.slept == [40.5, 40.5]


@BOTH
def test_a_slow_server_is_cut_off(name, server_type):
    with server_type(Fault(delay_s=100.0)) as server, lasts_at_most(30.0, time.monotonic):  # an SDK is imported, too
        with pytest.raises(ProviderError, match=r"no (usable )?answer"):
            ask(name, server.url, retry=FakeTime().retry(timeout_s=0.2, attempts=2))
        assert server.count == 2


@BOTH
def test_an_unreachable_server_is_named(name, server_type):
    with server_type() as server:
        gone = server.url
    with pytest.raises(ProviderError) as caught:
        ask(name, gone)
    assert (caught.value.status, caught.value.retryable) == (None, True)
    assert f"{name} at {gone}: given no usable answer: " in str(caught.value)
    assert "try: check that the server runs and that --base-url is right" in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT", "date": "Thu, 01 Jan 1970 00:01:00 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT", "date": "yesterday"}, 90.0),
        ({"retry-after": "7", "date": "Thu, 01 Jan 2099 00:01:00 GMT"}, 7.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers, seconds):
    assert read_retry_after(headers, now=lambda: 10.0) == seconds


def test_cancelling_is_not_retried():
    async def go() -> None:
        async def send(seconds: float) -> None:
            raise asyncio.CancelledError

        await Retry().send_patiently("here", send)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())


def test_an_error_of_ours_is_not_taken_for_a_failure_of_the_server():
    async def send(seconds: float) -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        asyncio.run(Retry().send_patiently("here", send))


def test_a_failure_without_status_is_retryable():
    assert Failure("no answer").is_retryable
    assert not Failure("no", status=404).is_retryable
