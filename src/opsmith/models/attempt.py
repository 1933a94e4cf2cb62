"""What came of one attempt? A reply, or a failure, in no provider's terms; each provider's module makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Generic, TypeVar

T = TypeVar("T")

_PASSING = {408, 409, 429}
_HOPELESS = {"insufficient_quota", "billing_hard_limit_reached"}


@dataclass(frozen=True)
class Sent(Generic[T]):
    """An attempt that brought a reply: the tokens it was billed, and the headers that it came with."""

    value: T
    tokens: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Failure(Exception):
    """One attempt that gave nothing to count, in no provider's terms; `text` holds no key."""

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,  # None: no answer, or one that is not a reply
        retry_after: float | None = None,  # seconds, as the server asked
        code: str = "",  # the server's own word for it
        parameter: str = "",  # the request's parameter that the server names
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.retry_after = retry_after
        self.code = code
        self.parameter = parameter

    @property
    def retryable(self) -> bool:
        if self.status is None:
            return True
        return (self.status in _PASSING or self.status >= 500) and self.code not in _HOPELESS

    @property
    def alike(self) -> tuple[int | None, str, str]:
        """Equal for failures of one kind."""
        return self.status, self.code, self.text


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that the headers ask to wait: `retry-after-ms`, or `retry-after` as a number or an HTTP date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            seconds = _until(text, now) if unit == 1.0 else float("nan")
        if isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str, now: Callable[[], float]) -> float:
    """Seconds until an HTTP date; nan when it is not one."""
    try:
        return parsedate_to_datetime(date).timestamp() - now()
    except (ValueError, TypeError, OverflowError):
        return float("nan")
