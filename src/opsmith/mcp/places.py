"""Which tasks a client may name: the bundled ones, and files inside folders that the user stated; no other path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from opsmith.errors import TaskError, UsageError
from opsmith.records import Task, printable
from opsmith.suites import DEFAULT_TARGET, SUITES, read_task_file, task_files
from opsmith.targets.lookup import BUILT_IN
from opsmith.targets.problem import NAME as PROBLEM_FILE
from opsmith.targets.problem import TRY_TARGET, refuse_without_language

LONGEST_NAME = 200  # characters of a task's name
MOST_FILES = 1000  # of all folders that are listed
LANGUAGES = tuple(sorted(BUILT_IN - {PROBLEM_FILE}))  # that a client may ask for
_ENDINGS = (".yaml", ".yml")
_PATH = re.compile(r"(?<![\w.:/~-])~?(?:/[\w.+@~-]+){2,}")  # an absolute one of two steps or more
_QUOTED = 80  # characters of a name that a refusal repeats


class TaskPlaces:
    """The user's choice of folders, of a language and of its options. Raises UsageError for a folder that is none."""

    def __init__(
        self,
        folders: Sequence[Path] = (),
        target: str | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise UsageError(f"--allow {folder}: expected a folder of task files")
        self._folders = tuple(folder.resolve() for folder in folders)
        self._target = target
        self._options = options

    def read_task(self, name: str, target: str = "") -> Task:
        """The task of that name, in the language asked for, or else in the user's or its own. Raises UsageError and
        TaskError, whose words hold no path but the given one."""
        path = self.find_file(name)
        try:
            task = read_task_file(path, self._find_target(target), self._options, takes_own=False)
            return refuse_without_language(task)
        except UsageError as error:
            raise UsageError(_hide_path(error, path, name)) from None
        except TaskError as error:
            raise TaskError(_hide_path(error, path, name), error.diagnostics) from None

    def list_names(self) -> Iterator[tuple[str, str]]:
        """Every suite, or "" for files of the user's, with the name of a task in it."""
        yield from ((suite, path.stem) for suite in SUITES for path in task_files(suite))
        names = dict.fromkeys(name for folder in self._folders for name in _list_files(folder))
        yield from (("", name) for name in names)

    def find_file(self, name: str) -> Path:
        """Raises UsageError for what is neither a bundled task nor a plain file inside a stated folder."""
        if not 0 < len(name) <= LONGEST_NAME or printable(name) != name:
            raise _refuse_name(name, f"a printable name of at most {LONGEST_NAME} characters")
        suite, _, task_id = name.rpartition("/")
        for bundled in SUITES:
            if suite in ("", bundled) and (path := _find_in_suite(bundled, task_id)):
                return path
        for folder in self._folders:
            if path := _find_in_folder(folder, name):
                return path
        raise _refuse_name(name, "a name that `list_tasks` lists")

    def choose_language(self, target: str) -> str:
        """A language's name, for what is asked without a task. Raises UsageError."""
        return self._find_target(target) or DEFAULT_TARGET

    def _find_target(self, target: str) -> str | None:
        if not target or target == self._target:
            return self._target
        if target not in LANGUAGES:
            raise UsageError(f"target {_quote_name(target)}: expected one of {', '.join(LANGUAGES)}")
        return target


def _find_in_suite(suite: str, task_id: str) -> Path | None:
    return next((path for path in task_files(suite) if path.stem == task_id), None)


def _find_in_folder(folder: Path, name: str) -> Path | None:
    """A plain YAML file below the folder, by its path from there. No step of the way may be a link or lead out."""
    steps = PurePosixPath(name).parts
    if name.startswith("/") or "\\" in name or ".." in steps or not name.endswith(_ENDINGS):
        return None
    path = folder
    for step in steps:
        path /= step
        if path.is_symlink():
            return None
    return path if path.is_file() else None


def _list_files(folder: Path) -> list[str]:
    files = sorted(path.name for path in folder.iterdir() if path.suffix in _ENDINGS)
    return [name for name in files[:MOST_FILES] if _find_in_folder(folder, name)]


def hide_places(text: str, given: str, own: Sequence[str] = ()) -> str:
    """An error's words without paths of this machine, but those that stand in what a client gave.

    >>> hide_places("no run 'a' in /home/me/my runs/x.sqlite; see /etc/a/b: 1", "a", ["/home/me/my runs/x.sqlite"])
    "no run 'a' in x.sqlite; see b: 1"
    """
    for place in own:
        text = text.replace(place, PurePosixPath(place).name)
    return _PATH.sub(lambda match: match[0] if match[0] in given else PurePosixPath(match[0]).name, text)


def _hide_path(error: Exception, path: Path, name: str) -> str:
    """The words, about the name that a client stated; what is an option to a person is an argument to a client."""
    return str(error).replace(str(path), name).replace(TRY_TARGET, "try: the argument `target`, such as c")


def _refuse_name(name: str, expected: str) -> UsageError:
    return UsageError(
        f"task {_quote_name(name)}: expected {expected}: the id of a bundled task, SUITE/ID, or the path of a YAML "
        "file from a folder that `opsmith mcp --allow FOLDER` stated; no absolute path, no `..`, no link"
    )


def _quote_name(name: str) -> str:
    return repr(printable(name if len(name) <= _QUOTED else f"{name[:_QUOTED]}... ({len(name)} characters)"))
