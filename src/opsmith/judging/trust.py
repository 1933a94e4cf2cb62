"""Whose code is in a task? Ours in a bundled task; anybody's in every other, whatever the file says of itself."""

from __future__ import annotations

from functools import lru_cache

from opsmith.records import Task
from opsmith.suites import find_bundled


@lru_cache(maxsize=1024)
def is_bundled(task: Task) -> bool:
    """Whether the task's content, not only its name, is that of a file that comes with Opsmith."""
    return find_bundled(task) is not None
