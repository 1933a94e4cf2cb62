"""What must be equal on another machine for it to come to the same results, and what differs, in words.

A sample and a verdict are functions of their inputs and of the programs that compute them, so these must be equal. The
version of a package that is worked on stays the same from commit to commit; the digest of its files does not. Of ours,
those count that a member runs.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier

PACKAGES = ("opsmith", "torch", "numpy")
FOLDER = Path(__file__).parents[1]
SUFFIXES = frozenset({".py", ".yaml", ".md", ".c", ".h"})
PARTS = ("agents", "executors", "judging", "models", "problems", "records.py", "running", "suites", "targets")


def list_versions(targets: Iterable[str] = ()) -> dict[str, str]:
    """What this machine computes with; what verifies programs of these targets, too."""
    packages = {name: metadata.version(name) for name in PACKAGES}
    machine = {"Python": platform.python_version(), "processor": platform.machine()}
    verifiers = {f"verifier of {name}": name_verifier(get_target(name)) for name in sorted(targets)}
    return {**packages, **machine, **verifiers, "files of opsmith": _digest_rooms(FOLDER, PARTS)}


def describe_differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """`torch 2.12.0 (here: 2.13.0), ...`; "": there is none."""
    names = dict.fromkeys([*ours, *theirs])
    different_names = [name for name in names if ours.get(name) != theirs.get(name)]
    return ", ".join(f"{name} {theirs.get(name, 'none')} (here: {ours.get(name, 'none')})" for name in different_names)


def _digest_rooms(folder: Path, rooms: Sequence[str]) -> str:
    """A name for the text of all code, tasks and prompts in these parts of a folder."""
    digest = hashlib.sha256()
    paths = (path for room in rooms for path in (folder / room, *(folder / room).rglob("*")))
    for file in sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
