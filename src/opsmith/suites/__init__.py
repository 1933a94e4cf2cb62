"""Task and problem files: which are bundled, and which a name means.

A name is the id of a bundled task, SUITE/ID, a bundled suite, a YAML file or a folder of YAML files; an id is a file's
stem. A file may say `target: NAME` on a line of its own; without it the target is `step`, or none for a problem file.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.errors import OpsmithError, OptionError, TaskError, UnaskableError, UsageError
from opsmith.outside import read_text
from opsmith.problems.files.reading import is_problem_file
from opsmith.records import Task
from opsmith.targets import Target, get_target, is_own
from opsmith.targets.faults import charged_to_target, of_kind
from opsmith.targets.lookup import LANGUAGES, WHY_NOT_STATED, is_language_file
from opsmith.targets.problem import NAME as PROBLEM_FILE
from opsmith.targets.problem import refuse_without_language
from opsmith.targets.protocols import Adapting, Configured, Suffixed

STEP_SUITES = ("step26", "step_extra", "blocks")
SUITES = (*STEP_SUITES, "kernels", "narrow")  # folders beside this file
DEFAULT_SUITE = "step26"  # the 26 tasks of the paper
DEFAULT_TARGET = "step"
PLAIN = "plain"  # folder beside task files with a program for each, by its id

_TARGET_LINE = re.compile(r"""^target:[ \t]*(["']?)([^"'#\s]+)\1[ \t]*(#.*)?$""", re.MULTILINE)


def task_files(suite: str = DEFAULT_SUITE) -> tuple[Path, ...]:
    """The task files of a bundled suite, by id."""
    return _files_in(Path(__file__).parent / suite)


def load_tasks(
    names: Sequence[str] = (), target: str | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Task, ...]:
    """The tasks that the names mean, in order; no name: the paper's 26. Raises UsageError and TaskError.

    `target`: the language that their problems are asked for in, where it is not that of the files; a problem file has
    none of its own. `options`: how programs are built and run, by names that the language knows.

    Of a suite or a folder what that language cannot be asked for is left out, with one warning; a task that is named
    raises UnaskableError, and so does a suite of which nothing is left.
    """
    named = read_task_files(names, resolve_names(names), target, options)
    return tuple(refuse_without_language(task) for _, task in named)


def load_task(
    path_or_id: str | Path, target: str | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> Task:
    """The one task of that id or file. Raises UsageError when there is none, TaskError when its file is wrong.

    `target`: the language that its problem is asked for in, where it is not that of the file; `options`: those of the
    language, such as `{"threads": 2}`.
    """
    tasks = load_tasks([str(path_or_id)], target, options)
    if len(tasks) != 1:
        raise UsageError(f"{path_or_id}: expected one task, given a folder of {len(tasks)}; try load_tasks")
    return tasks[0]


def read_task_files(
    names: Sequence[str],
    paths: Sequence[Path],
    target: str | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> list[tuple[Path, Task]]:
    """The files that the names mean, each with its task; without those that `load_tasks` leaves out."""
    whole = {
        path for name in names or [DEFAULT_SUITE] if name in SUITES or Path(name).is_dir() for path in _find_named(name)
    }
    tasks: list[tuple[Path, Task]] = []
    refused: list[tuple[Path, UnaskableError]] = []
    for path in paths:
        try:
            tasks.append((path, read_task_file(path, target, options)))
        except UnaskableError as error:
            if path not in whole:
                raise
            refused.append((path, error))
    if refused and not tasks:
        raise refused[0][1]
    _warn_of_refused(target, refused)
    return tasks


def _warn_of_refused(target: str | None, refused: Sequence[tuple[Path, UnaskableError]]) -> None:
    """Once in a process for the same tasks."""
    if not refused:
        return
    listed = ", ".join(path.stem for path, _ in refused)
    what = f"left out {len(refused)} of the tasks, which {target} cannot be asked for: {listed}"
    message = f"{what}; the first: {refused[0][1]}"
    if message not in _SAID:
        _SAID.add(message)
        logging.getLogger("opsmith.tasks").warning("%s", message)


_SAID: set[str] = set()


def resolve_names(names: Sequence[str] = ()) -> tuple[Path, ...]:
    """The task files that the names mean, in order, each once and each with an id of its own.

    Raises UsageError for a name that means nothing, and for two files of one id: a run and its store know a task by it.
    """
    by_id: dict[str, Path] = {}
    for path in find_files(names):
        first = by_id.setdefault(path.stem, path)
        if first is not path:
            raise UsageError(
                f"task {path.stem}: two files have this id: {first} and {path}; expected ids that differ, since a run "
                "and its store know a task by its file's name; try: rename one of them"
            )
    return tuple(by_id.values())


def find_files(names: Sequence[str] = ()) -> tuple[Path, ...]:
    """The task files that the names mean, in order, each once; several may have the same id. Raises UsageError."""
    by_id: dict[str, list[Path]] = {}
    files: list[Path] = []
    for name in names or [DEFAULT_SUITE]:
        for path in _find_named(name):
            twins = by_id.setdefault(path.stem, [])
            if not any(twin == path or twin.samefile(path) for twin in twins):
                twins.append(path)
                files.append(path)
    return tuple(files)


def name_files(paths: Sequence[Path]) -> list[str]:
    """What to call each file: its id, or its path where others have that id."""
    ids = Counter(path.stem for path in paths)
    return [path.stem if ids[path.stem] == 1 else str(path) for path in paths]


def read_task_file(
    path: Path,
    target: str | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    takes_own: bool = True,
) -> Task:
    """One file as a task of that target, or else of its own, with the program that lies beside it if it holds none.

    A problem file without a target is a task of the target `problem`. Raises TaskError with line and column where the
    file is wrong, and UsageError for options that the target does not have. `takes_own`: the file may state a target
    that is not built in, whose code is imported into this process.
    """
    return _add_plain(_ask_for(_read_own(path, takes_own), target, options), path)


def adapt_task(task: Task, target: str | None, options: Mapping[str, Any] = MappingProxyType({})) -> Task:
    """The task's problem as a task of that target, with these options; None: of its own.

    Raises UsageError where the target takes no problems of others or there is none, and TaskError where it does not
    take this one.
    """
    return refuse_without_language(_ask_for(task, target, options))


def _ask_for(task: Task, target: str | None, options: Mapping[str, Any]) -> Task:
    adapted = _translate_task(task, target)
    return _configure_task(adapted, options) if options and adapted.target != PROBLEM_FILE else adapted


def _translate_task(task: Task, target: str | None) -> Task:
    if target is None or target == task.target or get_target(target) is get_target(task.target):
        return task
    adapter = get_target(target)
    if not isinstance(adapter, Adapting):
        raise UsageError(
            f"target {target!r}: given task {task.id} of target {task.target!r}; expected task files of its own, since "
            "it cannot be asked for problems of other targets; try: a target that has `adapt_task`"
        )
    with charged_to_target(target, "adapt_task"):
        adapted = of_kind(adapter.adapt_task(task), Task)
    return replace(adapted, target=target)


def find_bundled(task: Task) -> Task | None:
    """The bundled file's task that this one is, in its content and not only by name."""
    for path in (path for suite in SUITES for path in task_files(suite) if path.stem == task.id):
        own = read_task_file(path)
        for bundled in (own, _translate_bundled(path, own, task.target)):
            if bundled is not None and bundled.digest == task.digest:
                return bundled
    return None


def _translate_bundled(path: Path, own: Task, target: str) -> Task | None:
    """The file's task in that language, if that is not its own."""
    if target == own.target:
        return None
    with contextlib.suppress(OpsmithError):  # a language that is not here, or does not take it
        return read_task_file(path, target)
    return None


def _configure_task(task: Task, options: Mapping[str, Any]) -> Task:
    target = get_target(task.target)
    if not isinstance(target, Configured):
        raise OptionError(f"options {', '.join(options)}: target {task.target!r} has none")
    try:
        with charged_to_target(task.target, "configure_task"):
            return of_kind(target.configure_task(task, options), Task)
    except UsageError as error:
        raise OptionError(str(error)) from error


def _add_plain(task: Task, path: Path) -> Task:
    """The task with the program of `plain/` beside its file, where it has none of its own."""
    target = get_target(task.target)
    if task.impl is not None or not isinstance(target, Suffixed):
        return task
    file = path.parent / PLAIN / f"{path.stem}{target.suffix}"
    return replace(task, impl=read_text(file)) if file.is_file() else task


def list_program_languages(task: Task) -> list[str]:
    """Those that a task brings a program of its own in: its file's, then the built-in ones of which one lies in
    `plain/`."""
    languages = [task.target] if task.impl is not None else []
    beside = (path.suffix for path in Path(task.path).parent.glob(f"{PLAIN}/{escape(task.id)}.*"))
    suffixes = set(beside)
    for name in LANGUAGES if suffixes else ():
        target = get_target(name)
        if isinstance(target, Suffixed) and target.suffix in suffixes and name not in languages:
            languages.append(name)
    return languages


def _read_own(path: Path, takes_own: bool = True) -> Task:
    """One file as a task of the target that it states."""
    text = read_text(path)
    stated = _TARGET_LINE.search(text)
    name = stated[2] if stated else PROBLEM_FILE if is_problem_file(text) else DEFAULT_TARGET
    if is_own(name) and not takes_own:
        raise TaskError(f"{path}: target: given {name}; expected a language that is built in")
    body = _TARGET_LINE.sub("#", text, count=1)  # the line stays, so that later lines keep their numbers
    target = _find_target(name, path)
    with charged_to_target(name, "read_task"):
        task = of_kind(target.read_task(body, path.stem, str(path)), Task)
    return replace(task, target=name)  # the name that found it here finds it in every process


def _find_target(name: str, path: Path) -> Target:
    """The target that a file states. A file may come from anybody, so it cannot make the standard library run."""
    if name.partition(":")[0].partition(".")[0] in sys.stdlib_module_names:
        raise TaskError(f"{path}: target: given {name}; expected the name of a target; try: `opsmith tasks` shows some")
    if is_language_file(name):
        expected = f"expected the option --target: {WHY_NOT_STATED}"
        raise TaskError(f"{path}: target: given {name} in a file of tasks; {expected}")
    try:
        target = get_target(name, str(path))
        _ = target.read_task
    except OpsmithError:
        raise
    except (Exception, SystemExit) as error:  # whatever the import of a module that is no target does
        raise TaskError(f"{path}: target: given {name}, which raised {error!r}; expected a target") from error
    return target


def _find_named(name: str) -> Iterable[Path]:
    try:
        return tuple(_resolve_one(name))
    except OSError as error:
        raise UsageError(f"task {name[:80]!r}: {error.strerror}; try: check the path and its rights") from error


def _resolve_one(name: str) -> Iterable[Path]:
    path = Path(name)
    if name in SUITES:
        return task_files(name)
    if path.is_dir():
        return _files_in(path) or _refuse_name(f"{name}: this folder holds no .yaml file")
    if path.suffix in {".yaml", ".yml"}:
        return [path] if path.is_file() else _refuse_name(f"{name}: does not exist")
    bundled = {file.stem: file for suite in SUITES for file in task_files(suite)}
    suite, _, task_id = name.rpartition("/")
    if task_id in bundled and suite in ("", bundled[task_id].parent.name):
        return [bundled[task_id]]
    near = get_close_matches(name, [*bundled, *SUITES], n=5)
    hint = f"near matches: {', '.join(near)}" if near else "`opsmith tasks` lists the ids"
    if path.is_file():
        _refuse_name(f"{name}: holds no task; expected a .yaml file; try, if it is a language's: --target {name}")
    return _refuse_name(f"task {name!r}: no such id, file or folder; {hint}")


def _files_in(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.glob("*.y*ml") if path.suffix in {".yaml", ".yml"}))


def _refuse_name(message: str) -> Iterable[Path]:
    raise UsageError(message)
