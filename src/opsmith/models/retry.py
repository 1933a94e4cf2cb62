"""When a failed request is sent again: one policy for all providers; the SDKs' own retries are off.

A provider's module turns each failed attempt into a `Failure`; `Retry` decides. Sent again: no answer at all, 408, 409,
429, 5xx (529 too), and an answer that cannot be read; never another 4xx, nor a 429 that says that the money is used up.
The wait is drawn from [0, min(cap, base * 2^k)) ("full jitter"), or is what `retry-after` says and a little more; a
server that asks for more than ten minutes is not waited for. When an attempt may start is the gate's question
(`limits`). What must not be done twice is sent again only if it surely was not done: 429, 529, no connection.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from opsmith.errors import ProviderError
from opsmith.models.attempt import Failure, Sent, format_wait
from opsmith.models.limits import DownError, Gate

T = TypeVar("T")
log = logging.getLogger("opsmith.models")

_REMEDIES = {
    **dict.fromkeys((301, 302, 303, 307, 308), "give --base-url the address itself: no redirect is followed"),
    400: "read the server's words; where prompt and reply are too long together: a larger context window there, lower "
    "max_tokens in a settings file, or --context-window, which leaves out demonstrations",
    401: "check the key; `opsmith models` says which variable holds it",
    402: "check the account's balance",
    403: "check the key and what it may use; `opsmith models` says which variable holds it",
    404: "check the model's name and --base-url",
    429: "lower --concurrency, or check the account's limits and balance",
}


@dataclass(frozen=True)
class Retry:
    """The policy. `sleep`, `clock` and `jitter` are replaced in tests."""

    attempts: int = 7
    base_s: float = 1.0
    cap_s: float = 60.0
    timeout_s: float = 300.0  # of one attempt
    deadline_s: float = 900.0  # of all attempts and waits together
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random

    async def send_patiently(
        self,
        where: str,
        send: Callable[[float], Awaitable[Sent[T]]],
        gate: Gate | None = None,
        tokens: int = 0,
        look_at: str = "",
        messages: Sequence[object] = (),
    ) -> T:
        """What `send(seconds)` brings; `where` opens every message. Raises ProviderError when it is given up.

        `tokens`: about how many an attempt will use; `messages`: of its prompt. `look_at`: where a person sees whether
        it was done; with it, nothing is sent again that may have been done. Time spent at the gate counts against no
        deadline.
        """
        gate = gate or Gate(1, clock=self.clock, sleep=self.sleep)
        remaining = self.deadline_s
        for attempt in range(1, self.attempts + 1):
            try:
                async with gate.hold_slot(tokens, messages):
                    began = self.clock()
                    result = await self._attempt_once(send, min(self.timeout_s, remaining))
                    gate.note_result(began, tokens, result)
            except DownError as down:
                failure, attempt = down.failure, attempt - 1  # noqa: PLW2901
                break
            if isinstance(result, Sent):
                return result.value
            failure = result
            if look_at and failure.in_doubt:
                raise _make_doubt(where, failure, look_at)
            wait = self.wait_s(failure, attempt)
            remaining -= self.clock() - began + wait
            if not failure.is_retryable or failure.asks_too_long or attempt == self.attempts or remaining <= 0:
                break
            log.info("%s: %s; attempt %d in %.1f s", where, _describe_failure(failure), attempt + 1, wait)
            await self.sleep(wait)
        raise make_provider_error(where, failure, attempt)  # outside any `except`: no SDK error hangs on it

    async def _attempt_once(self, send: Callable[[float], Awaitable[Sent[T]]], seconds: float) -> Sent[T] | Failure:
        try:
            async with asyncio.timeout(seconds):
                return await send(seconds)
        except TimeoutError:
            return _make_silence(seconds)
        except Failure as failure:
            return _make_silence(seconds) if failure.is_silent else failure

    def wait_s(self, failure: Failure, attempt: int) -> float:
        """Seconds to wait after the failed `attempt`, which counts from 1."""
        if failure.retry_after is not None:
            return failure.retry_after + self.jitter() * self.base_s
        return self.jitter() * min(self.cap_s, self.base_s * 2.0 ** (attempt - 1))


def _make_silence(seconds: float) -> Failure:
    hint = "a longer --request-timeout, a smaller max_tokens in a settings file or a lower --concurrency"
    text = f"silence: no answer within {seconds:.0f} s"
    return Failure(text, is_silent=True, hint=f"{hint}; then start the same command again")


def make_provider_error(where: str, failure: Failure, attempts: int) -> ProviderError:
    """The error that a person reads: where, given, expected, try."""
    down = "the server asks for too long a wait" if failure.asks_too_long else "the provider is down"
    tries = {0: f"not sent again: {down}", 1: "after 1 attempt"}.get(attempts, f"after {attempts} attempts")
    return ProviderError(
        f"{where}: given {_describe_failure(failure)}, {tries}; expected a completion; try: {_suggest_remedy(failure)}",
        status=failure.status,
        retryable=failure.is_retryable,
    )


def _make_doubt(where: str, failure: Failure, look_at: str) -> ProviderError:
    """It may have been done, and paid for: only a person can find out."""
    return ProviderError(
        f"{where}: given {_describe_failure(failure)}, which leaves open whether the server took the request; "
        f"expected its word for it; try: look at {look_at} before you start the same command again, which sends "
        f"the request anew",
        status=failure.status,
    )


def _describe_failure(failure: Failure) -> str:
    demand = f" (the server asks to wait {format_wait(failure.retry_after)})" if failure.retry_after else ""
    return f"HTTP {failure.status}: {failure.text}{demand}" if failure.status is not None else failure.text


def _suggest_remedy(failure: Failure) -> str:
    if failure.remedy or failure.hint:
        return failure.remedy or failure.hint
    if failure.asks_too_long:
        return "start the same command again after that time: it continues where it stopped"
    if failure.status is None:
        return "check that the server runs and that --base-url is right, then start the same command again"
    if failure.status >= 500 or failure.status in {408, 409}:
        return "start the same command again later: it continues where it stopped"
    return _REMEDIES.get(failure.status, "read the server's words")
