"""Problems of a run's tasks: what tells whether two runs were asked for the same, in one language or in two."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from opsmith.errors import OpsmithError
from opsmith.records import Task
from opsmith.store import Store
from opsmith.targets import get_target, is_own
from opsmith.targets.protocols import Portable


def digest_problems(tasks: Sequence[Task]) -> dict[str, str]:
    """The digests of the problems of one target's tasks, by the task's id; empty where the target tells none."""
    target = get_target(tasks[0].target) if tasks else None
    return {task.id: target.problem_digest(task) for task in tasks} if isinstance(target, Portable) else {}


def problem_keys(store: Store, run: str) -> dict[str, str]:
    """By task, what is equal for one problem in two languages; the digest of the task where its problem is not known.

    Stores that are older than problems know none: those of built-in targets are told from the tasks.
    """
    tasks, problems = store.read_tasks(run), store.read_problems(run)
    if not problems and tasks and not is_own(tasks[0].target):
        with contextlib.suppress(OpsmithError):  # an old text that today's language does not read
            problems = digest_problems(tasks)
    return {task.id: problems.get(task.id, task.digest) for task in tasks}


def task_keys(store: Store, run: str) -> dict[str, str]:
    """By task, what is equal for one problem in one language."""
    return {task.id: task.digest for task in store.read_tasks(run)}
