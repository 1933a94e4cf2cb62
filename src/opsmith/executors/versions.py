"""Would another machine find the same? What must be equal there, and what differs, in words.

A sample and a verdict are functions of their inputs and of the programs that compute them, so these must be equal. The
version of a package that is worked on stays the same from commit to commit; the digest of its files does not. Of ours,
those count that a member runs.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

PACKAGES = ("opsmith", "torch", "numpy")
FOLDER = Path(__file__).parents[1]
PARTS = ("agents", "benchmarks", "executors", "models", "records.py", "targets", "verification")


def versions() -> dict[str, str]:
    """What this machine computes with."""
    packages = {name: metadata.version(name) for name in PACKAGES}
    machine = {"Python": platform.python_version(), "processor": platform.machine()}
    return {**packages, **machine, "files of opsmith": _digest(FOLDER, PARTS)}


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """`torch 2.12.0 (here: 2.13.0), ...`; "": there is none."""
    names = dict.fromkeys([*ours, *theirs])
    other = [name for name in names if ours.get(name) != theirs.get(name)]
    return ", ".join(f"{name} {theirs.get(name, 'none')} (here: {ours.get(name, 'none')})" for name in other)


def _digest(folder: Path, parts: Sequence[str]) -> str:
    """A name for the text of all Python and task files in these parts of a folder."""
    digest = hashlib.sha256()
    found = (path for part in parts for path in (folder / part, *(folder / part).rglob("*")))
    for file in sorted(path for path in found if path.suffix in {".py", ".yaml"} and path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
