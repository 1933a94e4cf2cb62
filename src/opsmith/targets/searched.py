"""What a target adds whose programs can be enumerated without a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from opsmith.records import Task


@runtime_checkable
class Searched(Protocol):
    """`opsmith run --model search` asks such a target."""

    def programs(self, task: Task) -> Iterator[str]:
        """Well-typed programs for a task, each once, the best first; the same on every call. It may end."""
        ...
