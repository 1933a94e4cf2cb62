"""Programs that are known to be wrong, as files that say in their first lines for which problem, and where they fail.

    // problem: softmax
    // refused: RUN race on shared memory

Without the first line the problem is what the file's name says before `__`. C's files say `refused at RUN` behind what
is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.errors import UsageError

_HEAD = 6  # lines that are looked at
_PROBLEM = re.compile(r"^\W*problem:\s*([\w/]+)\s*$", re.MULTILINE)
_REFUSED = re.compile(r"^\W*(?:refused:|wrong:.*; refused at)[ \t]*([A-Z]+)\b[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class WrongProgram:
    """A program, its problem's id, and the stage that must refuse it."""

    path: Path
    problem: str
    stage: str
    source: str


def list_wrong_programs(folders: Sequence[Path], suffix: str) -> Iterator[WrongProgram]:
    """All files of a language below the folders that say where they fail, by path.

    Raises UsageError for a folder that is not there, and for a file that looks wrong and does not say it.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"--wrong {folder}: no such folder; expected one of wrong programs")
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield read_wrong_program(path)


def read_wrong_program(path: Path) -> WrongProgram:
    """Raises UsageError."""
    source = path.read_text("utf-8")
    head = "\n".join(source.split("\n", _HEAD)[:_HEAD])
    problem, refused = _PROBLEM.search(head), _REFUSED.search(head)
    if refused is None:
        raise UsageError(f"{path}: given no stage; expected a line such as `// refused: RUN` among the first {_HEAD}")
    name = problem[1] if problem else path.stem.partition("__")[0]
    return WrongProgram(path, name, refused[1], source)
