"""The index of a folder of results, its README.md: one line per experiment, from the JSON files beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opsmith_lab.evaluation.page import escape_text, write_table

_COLUMNS = ("experiment", "result", "model", "seeds", "tasks", "judged samples", "date", "command")
_HEAD = """\
# Results of experiments

Written by `opsmith experiment`; each page says what was asked and how sure the numbers are.
"""


def write_index(folder: Path) -> Path:
    """Write the index of a folder of results anew."""
    entries = [entry for file in sorted(folder.glob("*.json")) if (entry := _read_entry(file)) is not None]
    lines = [_HEAD, *write_table(_COLUMNS, [_format_entry(entry) for entry in entries])]
    path = folder / "README.md"
    path.write_text("\n".join(_link_pages(lines, entries)), encoding="utf-8")
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


def _format_entry(entry: Mapping[str, Any]) -> tuple[str, ...]:
    state = f"not complete ({entry['stopped']}): " if entry["stopped"] else ""
    models = ", ".join(entry["models"]) + (f" ({entry['mark']})" if entry["mark"] else "")
    counts = (", ".join(map(str, entry["seeds"])), str(len(entry["tasks"])), f"{entry['samples']:,}")
    provenance = entry["made"]
    return (entry["experiment"], state + entry["headline"], models, *counts, provenance["date"], provenance["command"])


def _link_pages(lines: list[str], entries: list[Mapping[str, Any]]) -> list[str]:
    """The first cell of each line leads to its page."""
    names = [escape_text(entry["experiment"]) for entry in entries]
    rows = [
        line.replace(f"| {name} |", f"| [{name}]({entry['experiment']}.md) |", 1)
        for name, entry, line in zip(names, entries, lines[3:], strict=False)
    ]
    return [*lines[:3], *rows, *lines[3 + len(rows) :]]
