"""What differs between two programs, line by line. Plain records, for pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import dropwhile, islice, zip_longest
from typing import Literal

MAX_LINES = 400  # of one difference; programs are short
_WORDS = re.compile(r"\w+|\s+|.")


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


Piece = tuple[str, bool]  # of a line: the text, and whether the other side has something else there


@dataclass(frozen=True)
class PairedLine:
    """One line of two programs beside each other; a side that has no such line is None."""

    kind: Literal["same", "changed", "removed", "added"]
    numbers: tuple[int | None, int | None]  # from 1
    sides: tuple[tuple[Piece, ...] | None, tuple[Piece, ...] | None]


@dataclass(frozen=True)
class PairedPrograms:
    """Two programs line by line; of long ones the first lines."""

    lines: tuple[PairedLine, ...]
    removed: int  # lines of the first that the second lacks
    added: int
    left_out: int  # lines of both that are not compared

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.added)


def pair_programs(first: str, second: str) -> PairedPrograms:
    """Two texts beside each other, blanks at the edges left out."""
    programs = [text.strip().splitlines() for text in (first, second)]
    before, after = (lines[:MAX_LINES] for lines in programs)
    pairs = [
        pair
        for tag, *place in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        for pair in _pair_block(tag, before, after, *place)
    ]
    return PairedPrograms(
        tuple(pairs),
        removed=sum(pair.kind in ("removed", "changed") for pair in pairs),
        added=sum(pair.kind in ("added", "changed") for pair in pairs),
        left_out=sum(map(len, programs)) - len(before) - len(after),
    )


def _pair_block(
    tag: str, before: Sequence[str], after: Sequence[str], start: int, end: int, begin: int, stop: int
) -> Iterator[PairedLine]:
    """The lines of one block of a comparison: `before[start:end]` beside `after[begin:stop]`."""
    for old, new in zip_longest(range(start, end), range(begin, stop)):
        numbers = None if old is None else old + 1, None if new is None else new + 1
        if old is None:
            yield PairedLine("added", numbers, (None, ((after[new], False),)))
        elif new is None:
            yield PairedLine("removed", numbers, (((before[old], False),), None))
        elif tag == "equal":
            yield PairedLine("same", numbers, (((before[old], False),), ((after[new], False),)))
        else:
            yield PairedLine("changed", numbers, _mark_changes(before[old], after[new]))


def _mark_changes(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both lines in pieces, word by word; lines that share little are marked as a whole."""
    words: list[list[str]] = [_WORDS.findall(line) for line in (before, after)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    if max(map(len, words)) > MAX_LINES or matcher.ratio() < 0.4:
        return ((before, False),), ((after, False),)
    old: list[Piece] = []
    new: list[Piece] = []
    for tag, start, end, begin, stop in matcher.get_opcodes():
        old.append(("".join(words[0][start:end]), tag != "equal"))
        new.append(("".join(words[1][begin:stop]), tag != "equal"))
    return tuple(filter(_has_text, old)), tuple(filter(_has_text, new))


def _has_text(piece: Piece) -> bool:
    return bool(piece[0])
