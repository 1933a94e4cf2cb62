"""What came of one attempt: a reply, or a failure, in no provider's terms; each provider's module makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST_S = 600.0  # that a server may ask us to wait; who asks for more is not waited for
_PASSING = {408, 409, 429}
_UNTOUCHED = {429, 529}  # a request so answered was not worked on
_HOPELESS = {"insufficient_quota", "billing_hard_limit_reached"}


@dataclass(frozen=True)
class Sent(Generic[T]):
    """An attempt that brought a reply: the tokens it was billed, and the headers that it came with."""

    value: T
    tokens: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Failure(Exception):
    """One attempt that gave nothing to count, in no provider's terms; `text` holds no key."""

    def __init__(  # noqa: PLR0913  (what is known of a failure; all of it by name)
        self,
        text: str,
        *,
        status: int | None = None,  # None: no answer, or one that is not a reply
        retry_after: float | None = None,  # seconds, as the server asked
        code: str = "",  # the server's own word for it
        parameter: str = "",  # the request's parameter that the server names
        sent: bool = True,  # False: nobody took the connection
        remedy: str = "",  # what to try, where more is known than the status says; then sending again is no use
        hint: str = "",  # what to try once it is given up
        is_silent: bool = False,  # the time of an attempt is over; where `sent`, the server may work on it still
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.retry_after = retry_after
        self.code = code
        self.parameter = parameter
        self.sent = sent
        self.remedy = remedy
        self.hint = hint
        self.is_silent = is_silent

    @property
    def is_retryable(self) -> bool:
        if self.remedy:
            return False
        if self.status is None:
            return True
        return (self.status in _PASSING or self.status >= 500) and self.code not in _HOPELESS

    @property
    def in_doubt(self) -> bool:
        """Whether the server may have done what it was asked to do all the same."""
        return self.sent and self.is_retryable and self.status not in _UNTOUCHED

    @property
    def asks_too_long(self) -> bool:
        """Whether the server asks for a longer wait than a request is worth."""
        return self.retry_after is not None and self.retry_after > LONGEST_S

    @property
    def failure_key(self) -> tuple[int | None, str, str]:
        """Equal for failures of one kind."""
        return self.status, self.code, self.text


def read_retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that the headers ask to wait: `retry-after-ms`, or `retry-after` as a number or an HTTP date.

    A date is read against the server's own clock where the headers tell it; `now` is ours.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            seconds = parse_http_date(text) - read_server_time(headers, now) if unit == 1.0 else float("nan")
        if isfinite(seconds):
            return max(0.0, seconds)
    return None


def read_server_time(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float:
    """The time at the server, in seconds since 1970: its `Date` header, or else our clock."""
    stated = parse_http_date(headers.get("date", ""))
    return stated if isfinite(stated) else now()


def parse_http_date(text: str) -> float:
    """Seconds since 1970; nan when it is no HTTP date."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return float("nan")


def format_wait(seconds: float) -> str:
    """
    >>> format_wait(90), format_wait(1e300)
    ('90 s', '1e+300 s')
    """
    return f"{seconds:.0f} s" if seconds < 1e9 else f"{seconds:.0e} s"
