"""Whose code is in a task? Ours in a bundled task; anybody's in every other, whatever the file says of itself."""

from __future__ import annotations

from functools import lru_cache

from opsmith.records import Task
from opsmith.suites import SUITES, read_task_file, task_files


@lru_cache(maxsize=1024)
def is_bundled(task: Task) -> bool:
    """Whether the task's content, not only its name, is that of a file that comes with Opsmith."""
    files = [file for suite in SUITES for file in task_files(suite) if file.stem == task.id]
    return any(read_task_file(file).digest == task.digest for file in files)
