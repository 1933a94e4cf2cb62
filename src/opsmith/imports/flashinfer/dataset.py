"""The files of a FlashInfer Trace data set: which definitions there are, and the workloads of each.

`definitions/OP/NAME.json` and `workloads/OP/NAME.jsonl` as the data set lays them out, flat folders, or one file. A
workload stands alone in its line, or in a trace without a solution. Nothing of a file is executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsmith.errors import TaskError, UsageError
from opsmith.imports.flashinfer.formats import Definition, Trace, Workload, read_json, read_model
from opsmith.outside import read_text

MOST_WORKLOADS = 200  # that are read of one definition
MOST_BYTES = 1 << 25  # of a file of workloads
MOST_FILES = 20_000

_FOLDERS = ("definitions", "workloads", "solutions", "traces", "blob")


@dataclass(frozen=True)
class DefinitionFile:
    """A file that should hold a definition, and the one that should hold its workloads."""

    path: Path
    label: str  # relative to the folder that is imported
    workloads: Path | None


@dataclass(frozen=True)
class ReadDefinition:
    """A definition with its text, its workloads, and what was wrong with some of these."""

    definition: Definition
    text: str
    sha256: str
    workloads: tuple[Workload, ...]
    warnings: tuple[str, ...]


def find_definitions(place: Path) -> list[DefinitionFile]:
    """The definitions of a folder, or the one of a file, by name. Raises UsageError where there is none."""
    if place.is_file():
        return [DefinitionFile(place, place.name, _find_workloads(place, place.parent))]
    if not place.is_dir():
        raise UsageError(f"{place}: does not exist; expected a definition's JSON, or a folder of them")
    top = place / "definitions" if (place / "definitions").is_dir() else place
    paths = [path for path in _list_json(top) if not _is_elsewhere(path.relative_to(top))]
    if not paths:
        raise UsageError(f"{place}: no .json file in it; expected definitions/OP/NAME.json, or definitions themselves")
    return [DefinitionFile(path, str(path.relative_to(place)), _find_workloads(path, place)) for path in paths]


def _list_json(top: Path) -> list[Path]:
    paths = sorted(path for path in top.rglob("*.json") if path.is_file())
    if len(paths) > MOST_FILES:
        raise UsageError(f"{top}: {len(paths)} .json files; expected at most {MOST_FILES}")
    return paths


def _is_elsewhere(path: Path) -> bool:
    """Whether it lies in another part of a data set."""
    return any(name in _FOLDERS[1:] or name.startswith(".") for name in path.parts[:-1])


def _find_workloads(path: Path, place: Path) -> Path | None:
    """The file of a definition's workloads: beside it, or in `workloads` at the same depth."""
    name = f"{path.stem}.jsonl"
    roots = [place, place.parent, *list(path.parents)[:3]]
    folders = [path.parent, *(root / "workloads" / path.parent.name for root in roots)]
    folders += [root / "workloads" for root in roots]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def read_definition(file: DefinitionFile) -> ReadDefinition:
    """A definition and its workloads. Raises TaskError where the definition is wrong; wrong workloads are warnings."""
    text = read_text(file.path)
    definition = read_model(Definition, read_json(text))
    workloads, warnings = read_workloads(file.workloads, definition) if file.workloads else ((), ())
    return ReadDefinition(definition, text, hashlib.sha256(text.encode()).hexdigest(), workloads, warnings)


def read_workloads(path: Path, definition: Definition) -> tuple[tuple[Workload, ...], tuple[str, ...]]:
    """The workloads of a file that fit a definition, and one warning for each that does not."""
    workloads: list[Workload] = []
    warnings: list[str] = []
    for number, line in _list_lines(path, warnings):
        where = f"{path.name}, line {number}"
        try:
            workload = _read_workload(read_json(line, where), where, definition.name)
            _check_workload(workload, definition, where)
        except TaskError as error:
            warnings.append(str(error))
        else:
            workloads.append(workload)
    if len(warnings) > 3:
        warnings[3:] = [f"and {len(warnings) - 3} more workloads that are left out"]
    return tuple(workloads), tuple(warnings)


def _list_lines(path: Path, warnings: list[str]) -> Iterator[tuple[int, str]]:
    """The first lines that are not blank, with their numbers."""
    if path.stat().st_size > MOST_BYTES:
        warnings.append(f"{path.name}: {path.stat().st_size} bytes; expected at most {MOST_BYTES}: not read")
        return
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(filled) > MOST_WORKLOADS:
        warnings.append(f"{path.name}: {len(filled)} workloads, of which the first {MOST_WORKLOADS} were read")
    yield from filled[:MOST_WORKLOADS]


def _read_workload(data: Any, where: str, name: str) -> Workload:
    """A line's workload, which may stand in a trace."""
    if not isinstance(data, dict) or "workload" not in data:
        return read_model(Workload, data, where)
    trace = read_model(Trace, data, where)
    if trace.definition != name:
        raise TaskError(f"{where}: a workload of {trace.definition!r}; expected one of {name!r}")
    return trace.workload


def _check_workload(workload: Workload, definition: Definition, where: str) -> None:
    variable = list_variable(definition)
    if missing := [name for name in variable if name not in workload.axes]:
        raise TaskError(f"{where}: no size of the axis {missing[0]}")
    for name, size in workload.axes.items():
        axis = definition.axes.get(name)
        if axis is None:
            raise TaskError(f"{where}: axis {name!r}: the definition has none of that name")
        if axis.type == "const" and axis.value != size:
            raise TaskError(f"{where}: axis {name} = {size}; it is the constant {axis.value}")


def list_variable(definition: Definition) -> list[str]:
    """The axes that vary, in the order of the definition."""
    return [name for name, axis in definition.axes.items() if axis.type == "var"]


def list_constants(definition: Definition) -> Mapping[str, int]:
    return {name: axis.value for name, axis in definition.axes.items() if axis.type == "const"}
