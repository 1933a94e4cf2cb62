"""Values that were worked out from the store, one per name, each made again when it is no longer good.

A value is good while its version (the store's, say) is the same; and, so that a run that writes many times a second
does not keep this process busy, for `PATIENCE` times as long as it took to make. Values are few: one per run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE = 20.0


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: list[T] = field(default_factory=list)  # one, or none yet
    version: Hashable = None
    good_until: float = 0.0  # on the monotonic clock


class ValueCache(Generic[T]):
    """Thread-safe; of several threads that ask for one name at once, one makes the value and the others wait."""

    def __init__(self, make: Callable[[str], T], version: Callable[[str], Hashable]) -> None:
        self._make = make
        self._version = version
        self._entries: dict[str, _Entry[T]] = {}
        self._lock = threading.Lock()

    def get_value(self, name: str) -> T:
        """Raises what `make` raises; nothing is kept then."""
        with self._lock:
            entry = self._entries.setdefault(name, _Entry())
        with entry.lock:
            version, now = self._version(name), time.monotonic()
            if not entry.value or (version != entry.version and now >= entry.good_until):
                entry.value = [self._make(name)]
                entry.version, took = version, time.monotonic() - now
                entry.good_until = now + took + PATIENCE * took
            return entry.value[0]

    def forget_value(self, name: str) -> None:
        """The next `get_value` makes the value again."""
        with self._lock:
            self._entries.pop(name, None)
