"""The licence of an imported file: what its header says, or a LICENSE file beside or above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from opsmith.problems.problem import NO_LICENCE

_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "LICENCE.md", "COPYING")
_MARK = re.compile(r"SPDX-License-Identifier:[ \t]*([\w.+-]+(?: (?:WITH|OR|AND) [\w.+-]+)*)")
_HEADER_LINES = 20
_LONGEST = 80  # characters of a licence's first line
_MOST_BYTES = 1 << 20


def find_licence(file: Path, text: str, top: Path) -> str:
    """In a few words; `top` is the imported folder, above which nothing is looked at but its own parent."""
    match = _MARK.search("\n".join(text.split("\n")[:_HEADER_LINES]))
    if match:
        return match[1]
    return next((title for folder in _list_folders(file, top) if (title := _read_title(folder))), NO_LICENCE)


def _list_folders(file: Path, top: Path) -> Iterator[Path]:
    top = (top if top.is_dir() else top.parent).resolve()
    for folder in file.resolve().parents:
        yield folder
        if folder == top.parent or top not in (folder, *folder.parents):
            return


def _read_title(folder: Path) -> str:
    """The first line of a folder's licence; "": there is none."""
    for name in _FILES:
        path = folder / name
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            lines = path.read_text("utf-8", errors="replace").split("\n")
            return next((line.strip(" #\t\r")[:_LONGEST] for line in lines if line.strip(" #\t\r")), "")
    return ""
