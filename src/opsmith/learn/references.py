"""A right program for a task's problem in another language: from that language's own programs, a library, or a run.

Two tasks state one problem where their targets say so by equal digests (`Portable`), not by their names.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opsmith.agents.prompt import ReferenceProgram
from opsmith.errors import OpsmithError, UsageError
from opsmith.outside import read_text
from opsmith.records import Task
from opsmith.results.bests import list_best
from opsmith.results.problems import digest_problems, problem_keys
from opsmith.store import Store
from opsmith.suites import SUITES, read_task_file, task_files
from opsmith.suites.library import FILE as MANIFEST
from opsmith.targets import get_target
from opsmith.targets.lookup import is_language_file
from opsmith.targets.protocols import Adapting


def look_up_references(where: str | None, tasks: Sequence[Task], store: Store | None) -> dict[str, ReferenceProgram]:
    """By task, the programs for their problems; without those that there is none for. `where`: as `find_reference`
    reads it; None or `none`: nothing is shown. Raises UsageError."""
    if where is None or where == "none":
        return {}
    if any(where == task.target for task in tasks):
        raise UsageError(f"reference {where!r}: that is the language of the tasks themselves; expected another one")
    programs = {task.id: find_reference(task, where, store) for task in tasks}
    return {name: program for name, program in programs.items() if program is not None}


def require_references(where: str | None, tasks: Sequence[Task], store: Store | None) -> dict[str, ReferenceProgram]:
    """What proposers are shown. Raises UsageError for a place that has a program for none of the tasks."""
    programs = look_up_references(where, tasks, store)
    if where not in {None, "none"} and not programs:
        what = f"translate {where!r}: it has a program for none of the {len(tasks)} tasks' problems"
        raise UsageError(
            f"{what}; try: a target that has plain programs for them, such as c, or a run that solved some"
        )
    return programs


def find_reference(task: Task, where: str, store: Store | None) -> ReferenceProgram | None:
    """The program for the problem of `task`; None: there is none. `where`: a target, a library's folder, or a run
    of the store.

    Raises UsageError for a place that is none of these.
    """
    if _is_library(where):
        return _search_library(task, Path(where))
    if _names_target(where):
        return _search_target(task, where)
    if store is None:
        raise UsageError(f"reference {where!r}: no target and no folder of a library; expected one, without a store")
    try:
        run = store.find_run(where)
    except OpsmithError as error:
        raise UsageError(
            f"reference {where!r}: no target, no run and no folder of a library; try: one of these ({error})"
        ) from error
    return _search_run(task, store, run)


def is_run(where: str | None) -> bool:
    """Whether a store is needed to look it up."""
    return where is not None and where != "none" and not _is_library(where) and not _names_target(where)


def _is_library(where: str) -> bool:
    return (Path(where) / MANIFEST).is_file()


def _names_target(where: str) -> bool:
    try:
        get_target(where)
    except UsageError:
        if is_language_file(where):
            raise
        return False
    return True


def _digest_problem(task: Task) -> str | None:
    """None: its target does not tell which problem it states."""
    return digest_problems([task]).get(task.id)


def _search_target(task: Task, target: str) -> ReferenceProgram | None:
    """Own programs of that language's tasks, and of problem files asked for in it: bundled ones, and the task's own
    file."""
    digest = _digest_problem(task)
    if digest is None:
        return None
    for path in _list_files(task):
        other = _read_in(path, target)
        if other is not None and other.impl is not None and _digest_problem(other) == digest:
            return ReferenceProgram(other.target, other.impl)
    return None


def _list_files(task: Task) -> Iterator[Path]:
    """Files that may state the task's problem: its own, then bundled ones of its name."""
    own = Path(task.path) if task.path else None
    if own is not None and own.is_file():
        yield own
    yield from (path for suite in SUITES for path in task_files(suite) if path.stem == task.id and path != own)


def _read_in(path: Path, target: str) -> Task | None:
    """The file's task in that language; None: it cannot be asked for there."""
    with contextlib.suppress(OpsmithError):
        task = read_task_file(path, target if isinstance(get_target(target), Adapting) else None)
        return task if task.target == target else None
    return None


def _search_library(task: Task, folder: Path) -> ReferenceProgram | None:
    """The operator whose problem is the task's, as far as the manifest tells it."""
    digest = _digest_problem(task)
    if digest is None:
        return None
    try:
        manifest: Any = json.loads(read_text(folder / MANIFEST))
        target = str(manifest["run"]["target"])
        for operator in manifest["operators"]:
            if target != task.target and operator.get("problem") == digest:
                return ReferenceProgram(target, str(operator["source"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"reference {folder}: {MANIFEST} is not that of a library: {error!r}") from error
    return None


def _search_run(task: Task, store: Store, run: str) -> ReferenceProgram | None:
    """What a run in another language keeps for the problem."""
    target, digest = store.target_name(run), _digest_problem(task)
    if digest is None or target == task.target:
        return None
    keys = problem_keys(store, run)
    bests = (best.experience for best in list_best(store, run))
    sources = (best.source for best in bests if keys.get(best.task.id) == digest)
    source = next(sources, None)
    return None if source is None else ReferenceProgram(target, source)
