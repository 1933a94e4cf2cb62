"""Values kept for later as long as there is room for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Storable(Protocol):
    """What can be kept."""

    @property
    def size(self) -> int:
        """Bytes, roughly; may grow while the value is in use."""


Key = TypeVar("Key")
Value = TypeVar("Value", bound=Storable)


class Shelf(Generic[Key, Value]):
    """Values by key. A value must be a pure function of its key: it may be gone and made anew at any time."""

    def __init__(self, room: int) -> None:
        self.room = room  # bytes, of all values together
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of that key, made if need be."""
        if key not in self._values:
            self._values[key] = make()
        self._values.move_to_end(key)
        return self._values[key]

    @property
    def size(self) -> int:
        """Bytes of all values together, roughly."""
        return sum(value.size for value in self._values.values())

    def drop_oldest(self) -> None:
        """Drop values, the longest unused first, until the rest fits."""
        while self._values and self.size > self.room:
            self._values.popitem(last=False)

    def clear(self) -> None:
        """Drop all."""
        self._values.clear()
