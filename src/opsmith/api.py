"""What `import opsmith` offers: a task, its verdicts, and a whole run.

Verdicts are made by a pool of worker processes that starts with the first one and is closed at exit, because task
files hold code of their authors.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from opsmith.benchmarks import load_tasks
from opsmith.errors import UsageError
from opsmith.records import Task, Verdict
from opsmith.verify import verifier
from opsmith.verify.pool import Pool

if TYPE_CHECKING:
    pass


def load_task(path_or_id: str | Path) -> Task:
    """The one task of that id or file. Raises UsageError when there is none, TaskError when its file is wrong."""
    tasks = load_tasks([str(path_or_id)])
    if len(tasks) != 1:
        raise UsageError(f"{path_or_id}: expected one task, given a folder of {len(tasks)}; try load_tasks")
    return tasks[0]


def verify(task: Task, source: str) -> Verdict:
    """The verdict on one program."""
    return default_pool().verify(task, source)


def verify_reply(task: Task, reply: str) -> Verdict:
    """The verdict on the program in a model's whole reply."""
    return verifier.verify_reply(task, reply, verify)


def verify_many(task: Task, sources: Sequence[str]) -> list[Verdict]:
    """One verdict per program, in order; isomorphic programs are run once."""
    return verifier.verify_many(task, sources, default_pool().verify_all)


@cache
def default_pool() -> Pool:
    """The process-wide pool: a worker per core."""
    pool = Pool(os.cpu_count() or 1)
    atexit.register(pool.close)
    return pool
