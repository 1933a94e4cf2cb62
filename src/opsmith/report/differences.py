"""What differs between two programs, line by line. Plain records, for pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import dropwhile, islice

MAX_LINES = 400  # of one difference; programs are short


@dataclass(frozen=True)
class Line:
    sign: str  # "-", "+", " ", or "@" where lines are left out
    text: str


@dataclass(frozen=True)
class Difference:
    """What has to change in another program to become this one."""

    against: str  # in words: the kept solution
    lines: tuple[Line, ...]


def find_difference(source: str, changed: str, against: str) -> Difference | None:
    """None where the programs are the same text, but for blanks at the edges."""
    before, after = changed.strip().splitlines(), source.strip().splitlines()
    if before == after:
        return None
    lines = islice(unified_diff(before, after, n=3, lineterm=""), 2, MAX_LINES)  # after the two lines with file names
    return Difference(against, tuple(map(_read_line, dropwhile(_begins_at_once, lines))))


def _begins_at_once(line: str) -> bool:
    """The head of a first part before which nothing is left out."""
    return line.startswith(("@@ -1,", "@@ -1 ", "@@ -0,0 "))


def _read_line(line: str) -> Line:
    return Line("@", "") if line[:1] == "@" else Line(line[:1], line[1:])


def most_similar(source: str, programs: Mapping[str, str]) -> str | None:
    """The name of the program that shares the largest part of its lines with `source`; the first of several."""
    own = _distinct_lines(source)

    def shared(name: str) -> float:
        lines = _distinct_lines(programs[name])
        return len(own & lines) / max(len(own | lines), 1)

    return max(programs, key=shared, default=None)


def _distinct_lines(source: str) -> set[str]:
    lines: Iterable[str] = (line.strip() for line in source.splitlines())
    return {line for line in lines if line}
