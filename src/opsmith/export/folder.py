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
from opsmith.export.manifest import content_digest

_LEFT_BY_TOOLS = ("__pycache__", ".pytest_cache", "build", ".git")  # what pip, pytest, make and git leave in a package


def check_free(folder: Path, manifest: str, kind: str) -> None:
    """Raises UsageError unless `folder` is absent, empty, or an export of this kind that nobody has changed."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder}: given a file; expected a folder that is empty or not there")
    if any(folder.iterdir()):
        problem = _find_foreign(folder, manifest, kind)
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
        draft = fresh / "new"
        draft.mkdir()
        fill(draft)
        if folder.exists():
            os.replace(folder, fresh / "old")
        os.replace(draft, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def write_texts(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


def _find_foreign(folder: Path, manifest: str, kind: str) -> str | None:
    """What in the folder is not as an export left it; None: nothing."""
    manifest_data = _read_manifest(folder / manifest)
    if manifest_data.get("format") != kind or not isinstance(manifest_data.get("files"), dict):
        return "it is not empty, and no export of this kind"
    files: dict[str, str] = manifest_data["files"]
    here = set(_list_files(folder))
    changed = sorted(
        path for path in files if path in here and content_digest((folder / path).read_bytes()) != files[path]
    )
    added = sorted(here - files.keys() - {manifest})
    return (
        f"{(changed or added)[0]} was {'changed' if changed else 'added'} since its export"
        if changed or added
        else None
    )


def _read_manifest(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _list_files(folder: Path) -> Iterator[str]:
    """The paths of all files that no tool has left there."""
    for path in folder.rglob("*"):
        names = path.relative_to(folder).parts
        is_by_tools = any(name in _LEFT_BY_TOOLS or name.endswith((".egg-info", ".so")) for name in names)
        if not is_by_tools and (path.is_file() or path.is_symlink()):
            yield "/".join(names)
