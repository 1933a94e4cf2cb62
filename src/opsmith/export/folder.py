"""A folder of files that appears whole or not at all, and replaces nothing that somebody else has made."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.export.manifest import content_digest
from opsmith.suites.library import FILE as _MANIFEST

HISTORY, BASELINE = "history", "baseline.json"  # of a library: manifests of before; figures of its programs
_LEFT_BY_TOOLS = (
    HISTORY,
    BASELINE,
    "__pycache__",
    ".pytest_cache",
    "build",
    ".git",
)  # what pip, pytest, make and git leave in a package

_UNFINISHED = ".unfinished"
_AT_CWD, _RENAME_EXCHANGE = -100, 2  # of linux/fcntl.h and linux/fs.h


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
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=_UNFINISHED, dir=folder.parent))
    try:
        draft = fresh / "new"
        draft.mkdir()
        fill(draft)
        _keep_past(folder, draft)
        if not folder.exists():
            os.replace(draft, folder)
        elif not _exchange_folders(draft, folder):
            os.replace(folder, fresh / "old")
            os.replace(draft, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _keep_past(folder: Path, draft: Path) -> None:
    """What of an old library goes on in the new one: its history, with the manifest that is replaced, and its figures
    unless there are new ones."""
    manifest = folder / _MANIFEST
    if not manifest.is_file() or not (draft / _MANIFEST).is_file():
        return
    if (folder / HISTORY).is_dir():
        shutil.copytree(folder / HISTORY, draft / HISTORY)
    if (folder / BASELINE).is_file() and not (draft / BASELINE).exists():
        shutil.copyfile(folder / BASELINE, draft / BASELINE)
    if manifest.read_bytes() != (draft / _MANIFEST).read_bytes():
        (draft / HISTORY).mkdir(exist_ok=True)
        number = len(list((draft / HISTORY).iterdir())) + 1
        shutil.copyfile(manifest, draft / HISTORY / f"{number:04}-{_MANIFEST}")


def _exchange_folders(draft: Path, folder: Path) -> bool:
    """Both names change hands in one step of the kernel, so that there is a whole folder at every moment; False: this
    system, or its file system, cannot."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(exchange(_AT_CWD, os.fsencode(draft), _AT_CWD, os.fsencode(folder), _RENAME_EXCHANGE) == 0)


@contextmanager
def hold_folder(folder: Path, tell: Callable[[str], None] | None) -> Iterator[None]:
    """For the block nobody else who asks holds the folder; what writers that were killed left beside it is removed.

    tell: is told that somebody else holds it, which is waited for; None: that is a UsageError. While a folder is not
    there, whoever makes one in the same place is waited for.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    handle = _lock_folder(folder, tell)
    try:
        for left in folder.parent.glob(f".{glob.escape(folder.name)}.*{_UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def _lock_folder(folder: Path, tell: Callable[[str], None] | None) -> int:
    """The folder, or that which it will lie in: two who made it at once would clear away each other's drafts."""
    while True:
        place = _find_place(folder)
        handle = os.open(place, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tell is not None:
                tell(f"{folder}: somebody else writes it: waiting")
            elif place == folder:
                os.close(handle)
                raise UsageError(f"{folder}: somebody else writes it; expected nobody; try: the same again") from None
            fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if _find_place(folder) == place and os.path.samestat(os.fstat(handle), place.stat()):
                return handle
        os.close(handle)  # it was made or replaced while it was waited for


def _find_place(folder: Path) -> Path:
    return folder if folder.is_dir() else folder.parent


def write_texts(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Texts, and what is none."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)


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
