"""Which settings does a run have? The defaults, a TOML file of settings over them, the command line's options last.

A settings file holds fields of `Settings` as top-level keys and nothing else; of its `tasks`, those that begin with ./
or ../ lie beside the file. An unknown or wrong value is a TaskError that names the file and line, or a UsageError that
names the option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opsmith.errors import TaskError, UsageError
from opsmith.outside import read_toml
from opsmith.settings import Settings

OPTIONS = {"temperatures": "--temperature", "from_run": "--from"}  # where it is not the field's name with dashes

NOT_IN_FILES = {  # a file may come from somebody else
    "trust_tasks": "the option --trust-tasks: a file may come from where the tasks do",
    "base_url": "the option --base-url: your key is sent there, so that a file cannot say where",
}


def resolve_settings(file: Path | None, options: Mapping[str, Any]) -> Settings:
    """The settings of a run; options that are None were not given."""
    given = {name: value for name, value in options.items() if value is not None}
    stated = read_config(file) if file is not None else {}
    try:
        return Settings(**{**stated, **given})
    except ValidationError as error:
        name, given_value, problem = _first(error)
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    raise UsageError(f"{option}: given {given_value}; expected {problem}")


def read_config(file: Path) -> dict[str, Any]:
    """The keys of a settings file, checked one by one against `Settings`."""
    if not file.exists():
        raise UsageError(f"{file}: no such settings file; try: experiments/main.toml")
    text, stated = read_toml(file)
    for key in stated:
        if key in NOT_IN_FILES:
            raise TaskError(f"{_place(file, text, key)}: {key}: given in a file; expected {NOT_IN_FILES[key]}")
        if key not in Settings.model_fields:
            raise TaskError(f"{_place(file, text, key)}: unknown key {key!r}; {_known(key)}")
    try:
        Settings(**stated)
    except ValidationError as error:
        name, given, problem = _first(error)
        raise TaskError(f"{_place(file, text, name)}: {name}: given {given}; expected {problem}") from error
    return {**stated, "tasks": [_beside(file, name) for name in stated["tasks"]]} if "tasks" in stated else stated


def _beside(file: Path, name: str) -> str:
    """A name of tasks; one that begins with ./ or ../ lies beside the file, wherever the command runs."""
    return str(file.parent / name) if name.startswith(("./", "../")) else name


def _first(error: ValidationError) -> tuple[str, str, str]:
    """(field, the value given, what pydantic wanted) of the first error."""
    found = error.errors(include_url=False, include_context=False)[0]
    problem = found["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return str(found["loc"][0]), repr(found["input"]), problem


def _known(key: str) -> str:
    near = get_close_matches(key, Settings.model_fields, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"known: {', '.join(Settings.model_fields)}"


def _place(file: Path, text: str, key: str) -> str:
    """`file:line` of the key's first line, as far as a search can tell."""
    match = re.search(rf"""^[ \t]*\[*["']?{re.escape(key)}["']?[ \t]*[=.\]]""", text, re.MULTILINE)
    return f"{file}:{text.count(chr(10), 0, match.start()) + 1}" if match else str(file)
