"""Files that somebody else may have written, read as text: regular ones of sensible size; and folders, removed.

A pipe or a device may never end, and neither may be noticed before the memory is full. What the text says is the
caller's to judge.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tomllib
from pathlib import Path
from typing import Any

from opsmith.errors import TaskError

MAX_BYTES = 2**20  # of one file
MOST_PARTS = 20  # of one dotted key: the parser's time grows with their square

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:{_PART}){{{MOST_PARTS}}}""")


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a file of so many bytes at most. Raises TaskError when it is none."""
    try:
        if not path.is_file():
            raise TaskError(f"{path}: cannot be read: it is no regular file; try: check the path and its links")
        if (size := path.stat().st_size) > most:
            raise TaskError(f"{path}: given {size} bytes; expected at most {most}; try: keep data out of it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from error


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """A TOML file as its text and what it says. Raises TaskError."""
    text = read_text(path)
    if _LONG_KEY.search(text):
        raise TaskError(f"{path}: not a readable TOML file: a key of more than {MOST_PARTS} parts; try: a flat file")
    try:
        return text, tomllib.loads(text)
    except RecursionError:  # the parser calls itself for every bracket
        raise TaskError(f"{path}: not a readable TOML file: nested too deeply; try: a flat file") from None
    except ValueError as error:  # TOML errors say line and column
        raise TaskError(f"{path}: not a readable TOML file: {error}") from error


def remove_folder(folder: Path) -> None:
    """Remove a folder that nobody writes to any longer, however deep it is; what cannot be removed stays.

    Folders come up before they are emptied: no path is too long for the system. No link is followed.
    """
    emptied = [folder]
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for inner in emptied:
        with contextlib.suppress(OSError):
            entries = list(os.scandir(inner))
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry, 0o700)  # it could not be moved otherwise
                    emptied.append(Path(entry).rename(folder / secrets.token_hex(16)))
                else:
                    os.unlink(entry)
    for inner in reversed(emptied):
        with contextlib.suppress(OSError):
            inner.rmdir()
