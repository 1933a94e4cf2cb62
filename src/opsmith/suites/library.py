"""A library as it lies in a folder: its operators with their problems, programs and figures, as they were written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.outside import read_text
from opsmith.records import Task

FILE = "manifest.json"
FORMAT = "opsmith library"
VERSION = 2  # 1 had neither the problems nor where each program lies


@dataclass(frozen=True)
class LibraryOperator:
    """One operator of a library."""

    name: str  # of its function
    task: Task  # without what only prompts show
    problem: str  # the digest that equal problems share, whatever their language
    source: str
    written_by: str  # model, person or rules
    figures: Mapping[str, float]  # by objective
    record: Mapping[str, Any]  # all that the manifest says


@dataclass(frozen=True)
class StoredLibrary:
    """What `read_library` has read."""

    folder: Path
    name: str
    target: str
    operators: Sequence[LibraryOperator]
    manifest: Mapping[str, Any]


def read_library(folder: Path) -> StoredLibrary:
    """The library of a folder that `opsmith export --library` made. Raises UsageError."""
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{folder}: given no {FILE}; expected a library; try: opsmith export RUN --library {folder}")
    try:
        manifest = json.loads(read_text(path))
        form, version = manifest["format"], manifest["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: given no manifest of an export: {error}; expected one of {FORMAT}") from None
    if form != FORMAT:
        raise UsageError(f"{path}: given {form}; expected {FORMAT}")
    if version != VERSION:
        remedy = "export the library again"
        raise UsageError(f"{path}: given version {version} of {FORMAT}; expected {VERSION}; try: {remedy}")
    try:
        operators = [_read_operator(folder, manifest["run"]["target"], record) for record in manifest["operators"]]
        return StoredLibrary(folder, manifest["name"], manifest["run"]["target"], operators, manifest)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path}: given a manifest without {error}; expected it as it was exported") from None


def _read_operator(folder: Path, target: str, record: Mapping[str, Any]) -> LibraryOperator:
    text = read_text(folder / record["problem_file"])
    task = Task(record["task"], target, text, group=record["group"] or "", path=str(folder / record["problem_file"]))
    if task.digest != record["task_digest"]:
        what = f"{task.path}: given another text than the manifest's, {record['task_digest']}"
        raise UsageError(f"{what}; expected the problem that was judged; try: export the library again")
    figures = {figure["objective"]: figure["value"] for figure in record["figures"]}
    own = (record["function"], task, record["problem"], record["source"], record["written_by"])
    return LibraryOperator(*own, figures, record)
