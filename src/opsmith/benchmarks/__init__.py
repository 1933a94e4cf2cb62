"""Which task files are there, and which does a name mean?

A name is the id of a bundled task, a bundled suite, a YAML file or a folder of YAML files; an id is a file's stem.
A file may say `target: NAME` on a line of its own; without it the target is `step`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from opsmith.errors import TaskError, UsageError
from opsmith.records import Task
from opsmith.targets import get_target

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
    found = [path for name in names or [DEFAULT_SUITE] for path in _resolve_one(name)]
    by_id: dict[str, Path] = {}
    for path in found:
        other = by_id.setdefault(path.stem, path)
        if other.resolve() != path.resolve():
            raise UsageError(f"task {path.stem}: two files have this id: {other} and {path}; try: rename one of them")
    return tuple(by_id.values())


def read_task_file(path: Path) -> Task:
    """One file as a Task. Raises TaskError with line and column where the file is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from error
    stated = _TARGET_LINE.search(text)
    target = stated[2] if stated else DEFAULT_TARGET
    rest = _TARGET_LINE.sub("#", text, count=1)  # the line stays, so that later lines keep their numbers
    task = get_target(target).read_task(rest, path.stem, str(path))
    return replace(task, target=target)  # the name that found it here finds it in every process


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
