"""`opsmith init`: which files does a project of one's own begin with?

They are rendered from the templates of its kind, with the project's name and that of its Python package.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from opsmith.errors import UsageError

SUFFIX = ".jinja"
INTERPRETED, COMMAND, EXECUTED = "project", "command_project", "executed_project"  # kinds: folders of templates
RENAMED = {"gitignore": ".gitignore"}  # packages do not carry files that begin with a dot


@dataclass(frozen=True)
class Name:
    """A project's name as a package index takes it, and the Python package in it."""

    project: str
    package: str


def write_project(folder: Path, name: str | None = None, kind: str = INTERPRETED) -> tuple[Path, ...]:
    """Write a new project into `folder`, which must be empty or not there yet: the files written.

    `kind`: INTERPRETED, with tasks in STeP and in a language of its own; COMMAND, with a language of a TOML file;
    EXECUTED, with a language whose candidates are executed.

    Errors  UsageError when something is there already, or the name is none for a package; nothing is written then
    """
    named = name_of(name if name is not None else folder.resolve().name)
    _refuse_content(folder)
    texts = {folder / path: text for path, text in render_project(named, kind)}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tuple(texts)


def name_of(text: str) -> Name:
    """The names that a text gives. Raises UsageError when it is none, or that of something that can be imported.

    >>> name_of("My-ops")
    Name(project='My-ops', package='my_ops')
    """
    package = re.sub(r"[-_.]+", "_", text.lower())
    if not re.fullmatch(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?", text, re.ASCII) or keyword.iskeyword(package):
        raise UsageError(
            f"project name {text!r}: expected letters, digits, . _ and -, beginning with a letter, and no word of "
            "Python's; try: --name NAME"
        )
    if find_spec(package) is not None:
        raise UsageError(f"project name {text!r}: a package {package} is there already; try: --name another_name")
    return Name(text, package)


def render_project(name: Name, kind: str = INTERPRETED) -> Iterator[tuple[PurePosixPath, str]]:
    """Every file of the project: its path in the folder, and its text."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (only this command needs it)

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    for path, template in _find_templates(files("opsmith.scaffold").joinpath(kind), PurePosixPath()):
        text = environment.from_string(template.read_text(encoding="utf-8"))
        folders = [
            name.package if folder_name == "package" else RENAMED.get(folder_name, folder_name)
            for folder_name in path.parts
        ]
        yield PurePosixPath(*folders), text.render(name=name.project, package=name.package)


def _find_templates(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _find_templates(entry, path / entry.name)
        elif entry.name.endswith(SUFFIX):
            yield path / entry.name.removesuffix(SUFFIX), entry


def _refuse_content(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: this is a file; expected a folder that is empty or not there yet")
    if folder.is_dir() and (names := sorted(entry.name for entry in folder.iterdir())):
        remainder = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise UsageError(
            f"{folder}: it holds {names[0]}{remainder}; expected an empty folder; try: another name for it"
        )
