"""Experiments read from TOML files. Wrong keys and values are TaskErrors that name the file and the line.

In a `[[arm]]`, a `[[model]]` and `[embedded]`, every key that is not one of the table's own is a setting of runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from opsmith.errors import TaskError, UsageError
from opsmith.outside import read_toml
from opsmith_lab.evaluation.analyses import ANALYSES
from opsmith_lab.evaluation.experiment import Arm, Embedded, Experiment, Series

_TABLES: dict[str, type[BaseModel]] = {"arm": Arm, "model": Series, "embedded": Embedded}


def read_experiment(file: Path) -> Experiment:
    """Raises TaskError for a file that is no experiment, UsageError when there is no such file."""
    if not file.exists():
        raise UsageError(f"{file}: no such experiment file; `opsmith experiment` lists the names")
    text, data = read_toml(file)
    if "analysis" not in data:
        what = f"settings of a run; try: opsmith run {file}" if "arm" not in data else "one, e.g. analysis = 'methods'"
        raise TaskError(f"{file}: no experiment: given no `analysis`; expected {what}")
    try:
        experiment = Experiment(name=file.stem, **_sort_keys(data))
    except ValidationError as error:
        place, problem = _describe_first(error)
        raise TaskError(f"{_locate_place(file, text, place)}: {problem}") from error
    except TypeError as error:  # the keys `name`, or one that is no identifier
        raise TaskError(f"{file}: {error}") from error
    if experiment.analysis not in ANALYSES:
        names = ", ".join(ANALYSES)
        where = _locate_place(file, text, ("analysis",))
        raise TaskError(f"{where}: analysis: given {experiment.analysis!r}; expected one of {names}")
    return experiment


def is_experiment(file: Path) -> bool:
    """Whether a TOML file is one of these, and not the settings of a run; a broken one is taken for one."""
    try:
        return "analysis" in read_toml(file)[1]
    except TaskError:
        return True


def _sort_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with their settings put together."""
    fields = dict(data)
    for name, kind in _TABLES.items():
        if name in fields:
            value = fields[name]
            fields[name] = (
                [_fold_settings(table, kind) for table in value]
                if isinstance(value, list)
                else _fold_settings(value, kind)
            )
    return fields


def _fold_settings(table: Any, kind: type[BaseModel]) -> Any:
    if not isinstance(table, Mapping):
        return table
    own = {name: value for name, value in table.items() if name in kind.model_fields and name != "settings"}
    return {**own, "settings": {name: value for name, value in table.items() if name not in own}}


def _describe_first(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """(place, message) of the first error; a key that is unknown is told before one that is missing."""
    errors = error.errors(include_url=False, include_context=False)
    details = min(errors, key=lambda entry: entry["type"] != "extra_forbidden")
    place = tuple(step for step in details["loc"] if step != "settings")
    problem = details["msg"].removeprefix("Value error, ")
    if details["type"] == "value_error":  # one of ours: it says all
        key = problem.partition(":")[0]
        return (*place, *([key] if key.isidentifier() else [])), problem
    if details["type"] == "extra_forbidden":
        return place, f"unknown key {place[-1]!r}; {_suggest_key(str(place[-1]))}"
    name = ".".join(map(str, place))
    if details["type"] == "missing":
        return place[:-1], f"{name}: given nothing; expected a value"
    return place, f"{name}: given {details['input']!r}; expected {problem.removeprefix('Input should be ')}"


def _suggest_key(key: str) -> str:
    names = [field.alias or name for name, field in Experiment.model_fields.items() if name != "name"]
    near = get_close_matches(key, names, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"known: {', '.join(names)}"


def _locate_place(file: Path, text: str, place: Sequence[str | int]) -> str:
    """`file:line` of the place, as far as a search can tell: its table, then its last key from there on."""
    names = [step for step in place if isinstance(step, str)]
    offset = 0
    if names and isinstance(next((step for step in place if not isinstance(step, str)), None), int):
        index = next(step for step in place if isinstance(step, int))
        headers = list(re.finditer(rf"^[ \t]*\[\[{re.escape(names[0])}\]\]", text, re.MULTILINE))
        offset = headers[index].start() if index < len(headers) else 0
    elif len(names) > 1:
        header = re.search(rf"^[ \t]*\[{re.escape(names[0])}\]", text, re.MULTILINE)
        offset = header.start() if header else 0
    if not names:
        return str(file)
    key = re.compile(rf"""^[ \t]*\[*["']?{re.escape(names[-1])}["']?[ \t]*[=.\]]""", re.MULTILINE).search(text, offset)
    line = text.count("\n", 0, key.start() if key else offset) + 1
    return f"{file}:{line}" if key or offset else str(file)
