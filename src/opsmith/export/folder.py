"""A folder of files that appears whole or not at all, and replaces nothing that somebody else has made."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.export.manifest import digest

_LEFT_BY_TOOLS = ("__pycache__", ".pytest_cache", "build", ".git")  # what pip, pytest and git leave in a package


def check_free(folder: Path, manifest: str, kind: str) -> None:
    """Raises UsageError unless `folder` is absent, empty, or an export of this kind that nobody has changed."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder}: given a file; expected a folder that is empty or not there")
    if any(folder.iterdir()):
        problem = _foreign(folder, manifest, kind)
        if problem is not None:
            expected = (
                f"expected an empty folder, or one that `opsmith export` made (its {manifest} says what was in it)"
            )
            raise UsageError(f"{folder}: {problem}; {expected}; try: another folder, or remove this one yourself")


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """`fill` a new folder beside it, then put that in its place."""
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = fresh / "new"
        made.mkdir()
        fill(made)
        if folder.exists():
            os.replace(folder, fresh / "old")
        os.replace(made, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def write_texts(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


def _foreign(folder: Path, manifest: str, kind: str) -> str | None:
    """What in the folder is not as an export left it; None: nothing."""
    told = _read(folder / manifest)
    if told.get("format") != kind or not isinstance(told.get("files"), dict):
        return "it is not empty, and no export of this kind"
    files: dict[str, str] = told["files"]
    here = set(_files(folder))
    changed = sorted(path for path in files if path in here and digest((folder / path).read_bytes()) != files[path])
    added = sorted(here - files.keys() - {manifest})
    return (
        f"{(changed or added)[0]} was {'changed' if changed else 'added'} since its export"
        if changed or added
        else None
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _files(folder: Path) -> Iterator[str]:
    """The paths of all files that no tool has left there."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        left = any(part in _LEFT_BY_TOOLS or part.endswith(".egg-info") for part in parts)
        if not left and (path.is_file() or path.is_symlink()):
            yield "/".join(parts)
