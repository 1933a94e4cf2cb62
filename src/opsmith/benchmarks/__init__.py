"""Which task files are there, and which does a name mean?

A name is the id of a bundled task, a bundled suite, a YAML file or a folder of YAML files; an id is a file's stem.
A file may say `target: NAME` on a line of its own; without it the target is `step`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from opsmith.errors import OpsmithError, TaskError, UsageError
from opsmith.outside import read_text
from opsmith.records import Task
from opsmith.targets import Target, get_target

SUITES = ("step26", "step_extra")  # folders beside this file
DEFAULT_SUITE = "step26"  # the 26 tasks of the paper
DEFAULT_TARGET = "step"

_TARGET_LINE = re.compile(r"""^target:[ \t]*(["']?)([^"'#\s]+)\1[ \t]*(#.*)?$""", re.MULTILINE)


def task_files(suite: str = DEFAULT_SUITE) -> tuple[Path, ...]:
    """The task files of a bundled suite, by id."""
    return _files_in(Path(__file__).parent / suite)


def load_tasks(names: Sequence[str] = ()) -> tuple[Task, ...]:
    """The tasks that the names mean, in order; no name: the paper's 26. Raises UsageError and TaskError."""
    return tuple(read_task_file(path) for path in resolve(names))


def resolve(names: Sequence[str] = ()) -> tuple[Path, ...]:
    """The task files that the names mean, in order, each once. Raises UsageError for a name that means nothing."""
    by_id: dict[str, Path] = {}
    for name in names or [DEFAULT_SUITE]:
        for path in _found(name):
            other = by_id.setdefault(path.stem, path)
            if other != path and not other.samefile(path):
                raise UsageError(
                    f"task {path.stem}: two files have this id: {other} and {path}; try: rename one of them"
                )
    return tuple(by_id.values())


def read_task_file(path: Path) -> Task:
    """One file as a Task. Raises TaskError with line and column where the file is wrong."""
    text = read_text(path)
    stated = _TARGET_LINE.search(text)
    name = stated[2] if stated else DEFAULT_TARGET
    rest = _TARGET_LINE.sub("#", text, count=1)  # the line stays, so that later lines keep their numbers
    task = _target(name, path).read_task(rest, path.stem, str(path))
    return replace(task, target=name)  # the name that found it here finds it in every process


def _target(name: str, path: Path) -> Target:
    """The target that a file states. A file may come from anybody, so it cannot make the standard library run."""
    if name.partition(":")[0].partition(".")[0] in sys.stdlib_module_names:
        raise TaskError(f"{path}: target: given {name}; expected the name of a target; try: `opsmith tasks` shows some")
    try:
        target = get_target(name)
        _ = target.read_task
    except OpsmithError:
        raise
    except (Exception, SystemExit) as error:  # whatever the import of a module that is no target does
        raise TaskError(f"{path}: target: given {name}, which raised {error!r}; expected a target") from error
    return target


def _found(name: str) -> Iterable[Path]:
    try:
        return tuple(_resolve_one(name))
    except OSError as error:
        raise UsageError(f"task {name[:80]!r}: {error.strerror}; try: check the path and its rights") from error


def _resolve_one(name: str) -> Iterable[Path]:
    path = Path(name)
    if name in SUITES:
        return task_files(name)
    if path.is_dir():
        return _files_in(path) or _nothing(f"{name}: this folder holds no .yaml file")
    if path.suffix in {".yaml", ".yml"}:
        return [path] if path.is_file() else _nothing(f"{name}: no such file")
    bundled = {file.stem: file for suite in SUITES for file in task_files(suite)}
    if name in bundled:
        return [bundled[name]]
    near = get_close_matches(name, [*bundled, *SUITES], n=5, cutoff=0.5)
    hint = f"near matches: {', '.join(near)}" if near else "`opsmith tasks` lists the ids"
    return _nothing(f"task {name!r}: no such id, file or folder; {hint}")


def _files_in(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.glob("*.y*ml") if path.suffix in {".yaml", ".yml"}))


def _nothing(message: str) -> Iterable[Path]:
    raise UsageError(message)
