"""The settings of a run. The defaults, a TOML file of settings over them, the command line's options last.

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
from opsmith.settings import NAMES, Settings, find_command

OPTIONS = {  # where it is not the field's name with dashes
    "temperatures": "--temperature",
    "from_run": "--from",
    "target_options": "--option",
    "models": "--model",
    "servers": "--server",
    "sources": "--source",
    "example_pair": "--example",
    "show_known": "--show-known/--no-known",
}

NOT_IN_FILES = {  # a file may come from somebody else
    "trust_tasks": "the option --trust-tasks: a file may come from where the tasks do",
    "base_url": "the option --base-url: your key is sent there, so that a file cannot say where",
    "analyst_url": "the option --analyst-url: your key is sent there, so that a file cannot say where",
    "servers": "the option --server: your key is sent there, so that a file cannot say where",
    "profile_command": "the option --profile-command: it is executed, with your rights",
    "pass_env": "the option --pass-env: what the variables hold, keys too, is handed to a program",
}


def resolve_settings(file: Path | None, options: Mapping[str, Any]) -> Settings:
    """The settings of a run; options that are None were not given."""
    stated_options = {name: value for name, value in options.items() if value is not None}
    stated = read_config(file) if file is not None else {}
    if {"model", "models"} & stated_options.keys():
        stated = {name: value for name, value in stated.items() if name not in {"model", "models"}}
    if "target_options" in stated_options:
        stated_options["target_options"] = {**stated.get("target_options", {}), **stated_options["target_options"]}
    try:
        return Settings(**{**stated, **stated_options})
    except ValidationError as error:
        name, given_value, problem = _read_first_error(error)
    raise UsageError(f"{name_option(name)}: given {given_value}; expected {problem}")


def refuse_idle_options(options: Mapping[str, Any], settings: Settings) -> None:
    """Raises UsageError for an option that nothing follows from, as long as another one is not stated."""
    planning, tooling = settings.teamwork.planning, settings.teamwork.tooling
    has_server = settings.provider.base_url or settings.teamwork.team.servers or settings.optimisation.analyst_url
    for is_idle, names, needed in (
        (planning.plan == "none", ("plan_after", "splits", "depth", "contract_rounds"), "--plan static or --plan llm"),
        (planning.plan != "llm", ("planner",), "--plan llm"),
        (tooling.tools == "none", ("tool_calls", "tool_tokens", "tool_seconds"), "--tools check or --tools all"),
        (settings.method.guardian != "llm", ("guardian_model",), "--guardian llm"),
        (settings.teamwork.showing.known is None, ("show_known",), "--known"),
        (not has_server, ("price_in", "price_out"), "--base-url or --server (a provider's prices are listed)"),
    ):
        for name in names if is_idle else ():
            if options.get(name) is not None:
                value, option = options[name], name_option(name)
                given = f"{option}: given {value}"
                if isinstance(value, bool):  # a pair of flags
                    given = f"{option.split('/')[not value]}: given"
                raise UsageError(f"{given} alone; expected {needed} beside it")


def read_config(file: Path) -> dict[str, Any]:
    """The keys of a settings file, checked one by one against `Settings`."""
    if file.suffix in {".yaml", ".yml"}:
        expected = "expected settings of a run, a .toml file"
        raise UsageError(f"{file}: given a task file; {expected}; try: --tasks {file}; several with commas: A,B")
    if not file.exists():
        raise UsageError(f"{file}: does not exist; expected a .toml file of settings; try: opsmith run without a file")
    text, stated = read_toml(file)
    for key in stated:
        if key in NOT_IN_FILES:
            raise TaskError(f"{_find_place(file, text, key)}: {key}: given in a file; expected {NOT_IN_FILES[key]}")
        if key not in NAMES:
            raise TaskError(f"{_find_place(file, text, key)}: unknown key {key!r}; {_list_known(key)}")
    if str(stated.get("target")).endswith(".toml"):
        expected = "expected the option --target: a language file names programs that are executed"
        raise TaskError(f"{_find_place(file, text, 'target')}: target: given {stated['target']!r}; {expected}")
    if name := find_command(stated):
        expected = f"expected the option {name_option(name)}: a command is executed, with your rights"
        raise TaskError(f"{_find_place(file, text, name)}: {name}: given {stated[name]!r} in a file; {expected}")
    if {"model", "models"} <= stated.keys():
        problem = "model: given beside models; expected one of them"
        raise TaskError(f"{_find_place(file, text, 'model')}: {problem}")
    try:
        Settings(**stated)
    except ValidationError as error:
        name, value, problem = _read_first_error(error)
        raise TaskError(f"{_find_place(file, text, name)}: {name}: given {value}; expected {problem}") from error
    if "tasks" not in stated:
        return stated
    # names that begin with ./ or ../ lie beside the file, wherever the command runs
    names = [str(file.parent / name) if name.startswith(("./", "../")) else name for name in stated["tasks"]]
    return {**stated, "tasks": names}


def name_option(setting: str) -> str:
    """The option that states a setting, in messages."""
    return OPTIONS.get(setting, f"--{setting.replace('_', '-')}")


def _read_first_error(error: ValidationError) -> tuple[str, str, str]:
    """(field, the value given, what pydantic wanted) of the first error."""
    first = error.errors(include_url=False, include_context=False)[0]
    problem = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    name = next((key for key in first["loc"] if key in NAMES), first["loc"][0])
    return str(name), repr(first["input"]), problem


def _list_known(key: str) -> str:
    near = get_close_matches(key, NAMES, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"known: {', '.join(NAMES)}"


def _find_place(file: Path, text: str, key: str) -> str:
    """`file:line` of the key's first line, as far as a search can tell."""
    match = re.search(rf"""^[ \t]*\[*["']?{re.escape(key)}["']?[ \t]*[=.\]]""", text, re.MULTILINE)
    return f"{file}:{text.count(chr(10), 0, match.start()) + 1}" if match else str(file)
