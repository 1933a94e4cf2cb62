"""Where a target's module may lie when it cannot be imported: looked for by name, never imported from there.

Code is imported from the import path only. A task file may come from anybody, so that a folder beside it is no place to
take code from; its owner can say that it is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ABOVE = 4  # folders above a task file
BELOW = 100  # folders in the working directory


def advise_on(module: str, near: str = "") -> str:
    """What to try when there is no `module` on the import path; `near`: the file that asked for it."""
    top = module.partition(".")[0]
    folder = next((folder for folder in _list_places(near) if _holds_module(folder, top)), None)
    if folder is None:
        return f"try: install what holds {top}, or PYTHONPATH=FOLDER for the folder that it lies in"
    return f"try, if the code of {top} there is yours: PYTHONPATH={_write_place(folder)}, or pip install its project"


def _list_places(near: str) -> Iterator[Path]:
    """Folders of projects nearby, and their `src`."""
    with_near = list(Path(near).absolute().parents[:ABOVE]) if near else []
    here = Path.cwd()
    below = islice((Path(entry.path) for entry in os.scandir(here) if entry.is_dir()), BELOW)
    for folder in (*with_near, here, *sorted(below)):
        yield from (folder, folder / "src")


def _holds_module(folder: Path, top: str) -> bool:
    try:
        return (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
    except OSError:
        return False


def _write_place(folder: Path) -> str:
    """As short as it can be said from here."""
    return str(folder.relative_to(Path.cwd())) if folder.is_relative_to(Path.cwd()) else str(folder)
