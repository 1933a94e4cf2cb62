"""How long does a store wait for what may pass: room on a full disk, a database server that is away?

Without patience not at all: the error says what to try. A run has patience without end, and says what it waits for;
after Ctrl-C it has a little left. What waits to be written is in memory meanwhile: the requests that were in flight.
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
    """The store cannot be read or written now; waiting may help."""


class Patience:
    """Shared by all that read or write one store. Thread-safe, and safe in a signal handler."""

    def __init__(self) -> None:
        self._until = 0.0  # monotonic seconds
        self._ended = threading.Event()

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

    def wait(self) -> None:
        """A moment, or until the store closes."""
        self._ended.wait(LOOK_S)


class Stubborn:
    """Tries again what may pass, as long as the patience lasts. `trouble`: what it waits for; "": it does not wait."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.trouble = ""

    def try_(self, work: Callable[[], T]) -> T:
        """What `work` brings. Raises StoreError."""
        while True:
            try:
                found = work()
            except PassingError as error:
                if not self._patience.lasts:
                    raise
                self._met(error)
            else:
                self._is_over()
                return found

    def _met(self, error: PassingError) -> None:
        if not self.trouble:
            log.warning("%s. The run waits; Ctrl-C ends it", error)
        self.trouble = str(error)
        self._patience.wait()

    def _is_over(self) -> None:
        if self.trouble:
            log.warning("the store can be used again: the run goes on")
            self.trouble = ""
