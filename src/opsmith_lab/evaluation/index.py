"""The index of a folder of results, its README.md: one line per experiment, from the JSON files beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opsmith.report.record import COUNT, TEXT, DataTable, Said, Value, write_grid

_COLUMNS = {"experiment": TEXT, "result": TEXT, "model": TEXT, "seeds": TEXT, "tasks": COUNT, "judged samples": COUNT}
_HEAD = """\
# Results of experiments

Written by `opsmith experiment`; each page says what was asked and how sure the numbers are.
"""


def write_index(folder: Path) -> Path:
    """Write the index of a folder of results anew."""
    entries = [entry for file in sorted(folder.glob("*.json")) if (entry := _read_entry(file)) is not None]
    table = DataTable("", {**_COLUMNS, "date": TEXT, "command": TEXT}, list(map(_list_cells, entries)))
    path = folder / "README.md"
    path.write_text("\n".join([_HEAD, *write_grid(table)]), encoding="utf-8")
    return path


def _read_entry(file: Path) -> Mapping[str, Any] | None:
    """A result; None for another JSON file."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    keys = {"experiment", "headline", "made", "models", "seeds", "tasks", "samples", "mark", "stopped"}
    fits = isinstance(data, dict) and keys <= data.keys() and data["experiment"] == file.stem
    return data if fits else None


def _list_cells(entry: Mapping[str, Any]) -> tuple[Value, ...]:
    name, made = entry["experiment"], entry["made"]
    state = f"not complete ({entry['stopped']}): " if entry["stopped"] else ""
    models = ", ".join(entry["models"]) + (f" ({entry['mark']})" if entry["mark"] else "")
    counts = (", ".join(map(str, entry["seeds"])), len(entry["tasks"]), entry["samples"])
    page = Said(name, link=("page", f"{name}.md"))
    return (page, state + entry["headline"], models, *counts, made["date"], made["command"])
