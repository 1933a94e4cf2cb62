"""Files that somebody else may have written, read as text: regular ones of sensible size.

A pipe or a device may never end, and neither may be noticed before the memory is full. What the text says is the
caller's to judge.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from opsmith.errors import TaskError

MAX_BYTES = 2**20  # of one file
MOST_PARTS = 20  # of one dotted key: the parser's time grows with their square

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:{_PART}){{{MOST_PARTS}}}""")


def read_text(path: Path) -> str:
    """The text of a file. Raises TaskError when it is none."""
    try:
        if not path.is_file():
            raise TaskError(f"{path}: cannot be read: it is no regular file; try: check the path and its links")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise TaskError(f"{path}: given {size} bytes; expected at most {MAX_BYTES}; try: keep data out of it")
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
