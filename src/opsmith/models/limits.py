"""When the next request may start. One gate per model: how many run at once, how fast, and when none may.

The number of requests at once starts at the stated limit, falls on 429 and when replies become slow, and rises again
(additive increase, multiplicative decrease). At a server of the user's own it starts at 1 (`OwnPace`). Of those who
wait, one goes next whose prompt begins as that of the last one (`WaitingLine`). `requests_per_minute` and
`tokens_per_minute` are kept by token buckets; rate-limit headers and `retry-after` close the gate for every request,
not only for the one that was refused, for at most `LONGEST_S`; a wait of more than `SAID_S` is said on the log.

After `BREAK` identical failures in a row the gate lets one request pass at a time, after growing waits; when `PROBES`
of these have failed as well, the provider is down and requests fail without being sent, until a new run. So they do
after a failure with which the server asks for a longer wait than `LONGEST_S`. Only a request that began after the last
such wait was set tells how the provider is: those under way do not count. Waiting at the gate counts against no
deadline of a request.

A server of the user's own that has answered nothing yet is given up sooner: after connections refused for `REFUSED_S`,
or `SILENCES` time-outs of a request that was alone there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from math import isfinite
from statistics import fmean, median
from typing import Any, NamedTuple

from opsmith.models.attempt import LONGEST_S, Failure, Sent, format_wait, read_server_time

BREAK = 10  # identical failures in a row
PROBES = 6  # single requests after that, before the provider is called down
PROBE_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # before each of them
DECREASE = 0.7
SLOWER = 2.0  # times the best latency seen: replies queue up at the provider
WINDOW = 16  # replies whose median latency is compared
SAID_S = 30.0  # a longer wait is said on the log
BURST_S = 6.0  # of a per-minute limit that may be used at once
REFUSED_S = 3.0  # of refused connections, after which a server of the user's own that never answered is not there
SILENCES = 3  # time-outs of a single request there, after which it is given up

_DATES = 1e9  # seconds: a larger number is no duration but a time since 1970
log = logging.getLogger("opsmith.models")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class RateLimits(NamedTuple):
    """What the user states."""

    requests: int = 16  # at once
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class DownError(Exception):
    """The provider is down: `failure` is what it answered last."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


@dataclass
class Bucket:
    """A token bucket: `per_minute` units a minute, a tenth of them at once. May be overdrawn by one large request."""

    per_minute: float
    clock: Callable[[], float]
    level: float = field(init=False)
    filled_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.level, self.filled_at = self.capacity, self.clock()

    @property
    def capacity(self) -> float:
        return max(1.0, self.per_minute * BURST_S / 60.0)

    def wait_s(self, units: float) -> float:
        """Seconds until `units`, or as many as fit the bucket, are there."""
        now = self.clock()
        self.level = min(self.capacity, self.level + (now - self.filled_at) * self.per_minute / 60.0)
        self.filled_at = now
        return max(0.0, (min(units, self.capacity) - self.level) * 60.0 / self.per_minute)

    def take_units(self, units: float) -> None:
        """Use `units`; negative ones come back."""
        self.level = min(self.capacity, self.level - units)


@dataclass
class OwnPace:
    """How many requests may be under way at a server of the user's own, which may answer one after the other.

    One at first, then one more with each reply while their number times the mean gap between replies is below half the
    time-out (and below three quarters with the one more): what waits longer than it is worked on there for nobody.
    """

    name: str  # of the model and its server, for messages
    timeout_s: float  # of one attempt
    has_answered: bool = False
    refused_since: float | None = None
    silences: int = 0  # since the last reply, of requests that were alone there
    _replied_at: float = float("-inf")
    _gaps: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def note_reply(self, began: float, now: float, allowed: float) -> float:
        """The number from now on."""
        self._gaps.append(now - max(began, self._replied_at))
        self._replied_at, self.has_answered, self.refused_since, self.silences = now, True, None, 0
        gap = fmean(self._gaps)
        if gap <= 0:
            return allowed + 1
        return min(allowed + 1, max(1.0, min(self.timeout_s / 2 // gap + 1, 3 * self.timeout_s / 4 // gap)))

    def note_silence(self, began: float, now: float, allowed: float) -> float:
        """The number after a time-out, for all that are under way."""
        number = max(1, int(allowed))
        self._gaps.clear()
        self._gaps.append((now - began) / number)
        fewer = max(1, number // 2)
        demand = f"; {fewer} at once from now on, not {number}" if number > 1 else "; it has one request at a time"
        log.warning("%s: silent, no answer within %.0f s%s", self.name, now - began, demand)
        return fewer

    def note_refusal(self, now: float, text: str) -> bool:
        """Whether nobody is there; the first refused connection is said."""
        if self.refused_since is None:
            self.refused_since = now
            more = "" if self.has_answered else f" for {REFUSED_S:.0f} s"
            log.warning("%s: %s; tried again%s", self.name, text, more)
        return not self.has_answered and now - self.refused_since >= REFUSED_S


class WaitingLine:
    """Who goes next of those who wait: the first one whose messages begin as those of the last one did, as long as any
    do. A server that keeps the beginning of a prompt so reads it once for many."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Sequence[object], asyncio.Event]] = []  # in the order in which they came
        self._called: asyncio.Event | None = None  # whose turn it is
        self._last: Sequence[object] = ()

    @contextlib.asynccontextmanager
    async def take_turn(self, messages: Sequence[object]) -> AsyncIterator[None]:
        """One at a time; who leaves calls the next one."""
        turn = messages, asyncio.Event()
        self._waiting.append(turn)
        try:
            self._call_next()
            await turn[1].wait()
            yield
            self._last = messages
        finally:
            self._waiting.remove(turn)
            if self._called is turn[1]:
                self._called = None
            self._call_next()

    def _call_next(self) -> None:
        if self._called is None and self._waiting:
            _, self._called = max(self._waiting, key=lambda turn: count_common(turn[0], self._last))
            self._called.set()


class Gate:
    """What all requests to one model pass. Belongs to one event loop; `clock` and `sleep` are replaced in tests."""

    def __init__(
        self,
        limit: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        pace: OwnPace | None = None,
    ) -> None:
        """`pace`: of a server of the user's own."""
        self.limit = limit
        self.allowed = float(limit) if pace is None else 1.0  # requests at once, now
        self._pace = pace
        self.in_flight = 0
        self._clock, self._sleep = clock, sleep
        self._requests = Bucket(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute, clock) if tokens_per_minute else None
        self._closed_until = 0.0
        self._lowered_at = float("-inf")
        self._latencies: deque[float] = deque(maxlen=WINDOW)
        self._best = float("inf")
        self._failures: list[Failure] = []  # identical ones in a row
        self._probes = 0
        self._probed_at = float("-inf")  # what began before knows nothing of how the provider is now
        self._gone: Failure | None = None  # after it nothing more is sent
        self._line = WaitingLine()
        self._departure = asyncio.Event()

    @contextlib.asynccontextmanager
    async def hold_slot(self, tokens: int = 0, messages: Sequence[object] = ()) -> AsyncIterator[None]:
        """Room for one request of about `tokens`. Raises DownError when there is no use in sending it."""
        async with self._line.take_turn(messages):
            await self._await_admission(tokens)
            self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._departure.set()

    async def _await_admission(self, tokens: int) -> None:
        while True:
            if self._gone is not None:
                raise DownError(self._gone)
            self._departure.clear()
            if self.in_flight >= self._at_once:
                await self._departure.wait()
            elif (wait := self._wait_s(tokens)) > 0:
                await self._sleep(wait)
            else:
                break
        if self._requests:
            self._requests.take_units(1)
        if self._tokens:
            self._tokens.take_units(tokens)

    @property
    def _at_once(self) -> int:
        return 1 if self._probes else max(1, int(self.allowed))

    def _wait_s(self, tokens: int) -> float:
        waits = [self._closed_until - self._clock()]
        waits += [self._requests.wait_s(1)] if self._requests else []
        waits += [self._tokens.wait_s(tokens)] if self._tokens else []
        return max(waits)

    def note_result(self, began: float, tokens: int, result: Sent[Any] | Failure) -> None:
        """What came of an attempt that began then. `tokens` is what the slot was asked for."""
        if isinstance(result, Sent):
            self._note_reply(began, tokens, result)
        elif result.is_retryable:
            self._note_failure(began, tokens, result)

    def _note_reply(self, began: float, tokens: int, sent: Sent[Any]) -> None:
        if began > self._probed_at:
            self._failures, self._probes = [], 0
        if self._tokens:
            self._tokens.take_units(sent.tokens - tokens)
        self._close_for(read_exhausted(sent.headers))
        if self._pace is not None:
            self.allowed = min(float(self.limit), self._pace.note_reply(began, self._clock(), self.allowed))
            return
        self._latencies.append(self._clock() - began)
        if len(self._latencies) == WINDOW:
            latency = median(self._latencies)
            self._best = min(self._best, latency)
            if latency > SLOWER * self._best:
                self._lower_allowed(began)
                return
        self.allowed = min(float(self.limit), self.allowed + 1.0 / self.allowed)

    def _note_failure(self, began: float, tokens: int, failure: Failure) -> None:
        if self._tokens:
            self._tokens.take_units(-tokens)
        if failure.status == 429 or failure.retry_after is not None:
            self._close_for(None if failure.asks_too_long else failure.retry_after)
            self._lower_allowed(began)
        if self._pace is not None:
            self._note_absence(self._pace, began, failure)
        if began > self._probed_at:
            self._count_failure(failure)
        if failure.asks_too_long or self._probes > PROBES:
            self._gone = failure

    def _note_absence(self, pace: OwnPace, began: float, failure: Failure) -> None:
        """A server of the user's own did not answer: it is slow, or not there at all."""
        now = self._clock()
        if failure.status is not None:
            pace.has_answered = True
        elif not failure.sent:
            self._close_for(1.0)
            self._gone = failure if pace.note_refusal(now, failure.text) else self._gone
        elif failure.is_silent and began > self._lowered_at:
            pace.silences += self._at_once == 1
            self.allowed, self._lowered_at = pace.note_silence(began, now, self.allowed), now
            self._gone = failure if not pace.has_answered and pace.silences >= SILENCES else self._gone

    def _count_failure(self, failure: Failure) -> None:
        if failure.status == 429:  # the provider is there: it is waited for, and never called down
            self._failures = []
            return
        alike = not self._failures or self._failures[-1].failure_key == failure.failure_key
        self._failures = [*self._failures, failure] if alike else [failure]
        if self._probes or len(self._failures) >= max(BREAK, self.limit):
            self._close_for(PROBE_S[min(self._probes, len(PROBE_S) - 1)])
            self._probes += 1
            self._probed_at = self._clock()

    def _lower_allowed(self, began: float) -> None:
        """Once for all requests that were under way together: a later one was sent at the lower number already."""
        if began > self._lowered_at:
            self.allowed = max(1.0, self.allowed * DECREASE)
            self._lowered_at = self._clock()
            self._latencies.clear()

    def _close_for(self, seconds: float | None) -> None:
        if seconds is None:
            return
        until = self._clock() + min(seconds, LONGEST_S)
        if until > max(self._closed_until, self._clock()) + SAID_S:
            demand = f"the server asks to wait {format_wait(seconds)}"
            log.warning("%s: no request starts before %.0f s have passed", demand, until - self._clock())
        self._closed_until = max(self._closed_until, until)


def count_common(messages: Sequence[object], others: Sequence[object]) -> int:
    """How many messages two prompts have in common at their beginning.

    >>> count_common("abc", "abd"), count_common("abc", "xbc"), count_common("", "a")
    (2, 0, 0)
    """
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(messages, others, strict=False))))


def read_exhausted(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds until a rate limit of which nothing remains is reset, as OpenAI's and Anthropic's headers say.

    A date is read against the server's own clock where the headers tell it; `now` is ours.
    """
    waits = []
    for kind in ("requests", "tokens"):
        for remaining, reset in (
            (f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}"),
            (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset"),
        ):
            if headers.get(remaining, "").strip() == "0":
                waits.append(_parse_wait(headers.get(reset, ""), read_server_time(headers, now)))
    return max((wait for wait in waits if wait is not None), default=None)


def _parse_wait(text: str, now: float) -> float | None:
    """`6m0s`, `20ms`, `1.5`, a date of RFC 3339, or s or ms since 1970, in seconds from now; None: none of these."""
    match = _DURATION.fullmatch(text.strip())
    if text.strip() and match:
        hours, minutes, seconds, milliseconds = (float(field or 0) for field in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    with contextlib.suppress(ValueError):
        number = float(text)
        if number > _DATES:
            number = (number / 1000 if number > 1000 * _DATES else number) - now
        return max(0.0, number) if isfinite(number) else None
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, datetime.fromisoformat(text.strip()).timestamp() - now)
    return None
