"""A canary key, and every place where it would be seen: bytes of files, rows of stores, columns of Parquet files."""

from __future__ import annotations

import base64
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet

TESTS = Path(__file__).parents[1]
KEY = "Zq7/canary+0123456789abcdef=Kw"  # looks like no provider's: it is found because it is ours
HALF = len(KEY) // 2
NEEDLES = {
    "whole": KEY,
    "first half": KEY[:HALF],
    "second half": KEY[HALF:],
    "in an address": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode(),
}
SUM = "target: tiny_target:TINY\ninputs: {x: [1, 2], y: [3, 5]}\nwant: [4, 7]\n"


def surroundings(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process: no key but what `more` says, its temporary files under `folder`."""
    names = ("PATH", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    for name in ("tmp", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    own = {"PYTHONPATH": str(TESTS), "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home"), "COLUMNS": "400"}
    return {**kept, **own, **more}


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """`opsmith ARGUMENTS` in `folder`; what it prints is added to `printed.txt` there."""
    command = [sys.executable, "-m", "opsmith", *arguments]
    with (folder / "printed.txt").open("ab") as printed:
        return subprocess.Popen(
            command, cwd=folder, env=surroundings(folder, environment), stdout=printed, stderr=printed
        )


def begin(folder: Path) -> Path:
    """An empty folder with one tiny task."""
    folder.mkdir(parents=True)
    (folder / "sum_0.yaml").write_text(SUM, encoding="utf-8")
    return folder


def leaks(folder: Path, *extra: str) -> list[str]:
    """Every place under `folder`, and every one of the `extra` texts, that holds a part of the key."""
    texts = [*places(folder), *((f"text {number}", text) for number, text in enumerate(extra))]
    return [f"{place}: {name}" for place, text in texts for name, needle in NEEDLES.items() if needle in text]


def places(folder: Path) -> Iterator[tuple[str, str]]:
    """(where, what is there) of every file, apart from the `.env` in which the key was given."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == ".env":
            continue
        yield str(path.relative_to(folder)), path.read_bytes().decode("latin-1")
        yield "name of a file", path.name
        if path.suffix == ".sqlite":  # a long text lies on pages that are not neighbours
            with sqlite3.connect(path) as connection:
                yield f"{path.name}, its rows", "\n".join(connection.iterdump())
            connection.close()
        if path.suffix == ".parquet":  # compressed
            yield f"{path.name}, its rows", str(pyarrow.parquet.read_table(path).to_pylist())
