"""How long a store waits for what may pass: room on a full disk, a database server that is away.

Without patience not at all: the error says what to try. A run has patience without end, and says what it waits for;
after Ctrl-C it has a little left. What waits to be written is in memory, and its replies in a file (`unsaved`).
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from opsmith.errors import StoreError

T = TypeVar("T")
LOOK_S = 0.5

log = logging.getLogger("opsmith.store")


class PassingError(StoreError):
    """The store cannot be read or written now; waiting may help. `trouble` says what happened, without a remedy."""

    def __init__(self, message: str, trouble: str, waits_for: str) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.waits_for = waits_for


class Patience:
    """Shared by all that read or write one store. Thread-safe; `hurry` is safe in a signal handler."""

    def __init__(self) -> None:
        self._until = 0.0  # monotonic seconds
        self._ended = threading.Event()
        self._talking = threading.Lock()
        self._waiting: set[object] = set()

    @contextlib.contextmanager
    def without_end(self) -> Iterator[None]:
        """While inside, what may pass is waited for."""
        self._until = math.inf
        try:
            yield
        finally:
            self._until = 0.0

    def hurry(self, seconds: float) -> None:
        """Wait for nothing longer than that from now on."""
        self._until = min(self._until, time.monotonic() + seconds)

    def end(self) -> None:
        """Wait for nothing any more: the store is closing."""
        self._until = 0.0
        self._ended.set()

    @property
    def lasts(self) -> bool:
        return time.monotonic() < self._until

    def wait_moment(self, who: object, error: PassingError) -> None:
        """A moment, or until the store closes. What is waited for is said once for all who wait at a time."""
        with self._talking:
            if not self._waiting:
                ends = "and then goes on by itself; Ctrl-C ends it"
                log.warning("%s: the run waits for %s, %s", error.trouble, error.waits_for, ends)
            self._waiting.add(who)
        self._ended.wait(LOOK_S)

    def is_over(self, who: object, words: str) -> None:
        """Who waited does so no more; `words` are said when nobody does."""
        with self._talking:
            self._waiting.discard(who)
            if words and not self._waiting:
                log.warning(words)


class Stubborn:
    """Tries again what may pass, as long as the patience lasts. `trouble`: what it waits for; "": it does not wait."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.trouble = ""

    def try_patiently(self, work: Callable[[], T]) -> T:
        """What `work` brings. Raises StoreError."""
        while True:
            try:
                result = work()
            except PassingError as error:
                if not self._patience.lasts:
                    self._end_trouble("")
                    raise
                self.trouble = error.trouble
                self._patience.wait_moment(self, error)
            except StoreError:
                self._end_trouble("")
                raise
            else:
                self._end_trouble("the store can be used again: the run goes on")
                return result

    def _end_trouble(self, words: str) -> None:
        if self.trouble:
            self.trouble = ""
            self._patience.is_over(self, words)
