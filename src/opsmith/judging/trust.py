"""Whose code is in a task? Ours in a bundled task; anybody's in every other, whatever the file says of itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache

from opsmith.errors import OpsmithError
from opsmith.records import Task
from opsmith.suites import SUITES, find_bundled, read_task_file, task_files
from opsmith.targets import get_target, is_own
from opsmith.targets.protocols import Portable


@lru_cache(maxsize=1024)
def is_bundled(task: Task) -> bool:
    """Whether the task's content, not only its name, is that of a file that comes with Opsmith.

    So it is where a built-in language is asked, with options or without, for the problem that such a file states: of
    the task's author nothing runs then but the problem.
    """
    if is_own(task.target):  # its code is somebody's, and a worker of ours could not read it
        return False
    return find_bundled(task) is not None or _find_problem_digest(task) in set(_list_problem_digests(task))


def _list_problem_digests(task: Task) -> Iterator[str]:
    """Those of files of that name which were written for no language, or another one."""
    for path in (path for suite in SUITES for path in task_files(suite) if path.stem == task.id):
        own = read_task_file(path)
        if own.target != task.target and (digest := _find_problem_digest(own)):
            yield digest


def _find_problem_digest(task: Task) -> str:
    """ "": the task states no problem."""
    with contextlib.suppress(OpsmithError):
        target = get_target(task.target)
        return target.problem_digest(task) if isinstance(target, Portable) else ""
    return ""
