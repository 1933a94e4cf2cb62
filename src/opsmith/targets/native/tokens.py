"""C as a preprocessor first sees it: spliced lines and comments gone, tokens with their lines, directives apart.

Nothing is expanded. What makes a text look different to us than to a compiler (trigraphs, digraphs, raw strings, stray
quotes) becomes a token of kind ODD, which `source` refuses.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class TokenKind(StrEnum):
    NAME = "name"
    NUMBER = "number"
    TEXT = "text"  # a string or a character
    MARK = "mark"  # anything else
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    line: int  # from 1, in the source
    place: int  # of its first character, in the spliced text


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """The tokens of one line; a directive's begin with `#`."""

    tokens: tuple[Token, ...]

    @property
    def is_directive(self) -> bool:
        return self.tokens[0].text == "#"


_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\r]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)
    |(?P<newline>\n)
    |(?P<odd>(?:u8|u|U|L)?R"|\?\?[=/'()!<>-]|%:|<:|:>|<%|%>|/\*(?s:.)*+)  # a comment that never ends
    |(?P<text>(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*+"|(?:u|U|L)?'(?:[^'\\\n]|\\.)++')
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*)
    |(?P<mark>\#\#|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|&&|\|\||[<>=!+*/%&^|-]=|[][{}()<>=+*/%&|^~!?:;,.\#-])
    |(?P<stray>.)
    """,
    re.VERBOSE,
)


def split_lines(source: str) -> list[LogicalLine]:
    """The lines that hold a token at all."""
    lines: list[LogicalLine] = []
    current: list[Token] = []
    for token in _list_tokens(source):
        if token is not None:
            current.append(token)
        elif current:
            lines.append(LogicalLine(tuple(current)))
            current = []
    return [*lines, LogicalLine(tuple(current))] if current else lines


def blank_comments(source: str) -> str:
    """The text as its compiler sees it, with blanks for comments; what is left stands on the line on which it began.

    >>> blank_comments("a; // b\\nc /* d */ e\\n")
    'a;\\nc   e\\n'
    """
    text, table = _splice_lines(source)
    rows = [""] * (source.count("\n") + 1)
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "newline":
            is_comment = match.lastgroup == "blank" and match[0].startswith("/")
            rows[table.find_line(match.start()) - 1] += " " if is_comment else match[0]
    return "\n".join(row.rstrip() for row in rows)


def join_splices(source: str) -> str:
    """The text with every line end that a backslash precedes taken out."""
    return _SPLICE.sub("", source)


def _list_tokens(source: str) -> Iterator[Token | None]:
    """Tokens in order; None ends a line."""
    text, table = _splice_lines(source)
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group == "newline":
            yield None
        elif group != "blank":
            kind = TokenKind.ODD if group == "stray" else TokenKind(str(group))
            yield Token(kind, match[0], table.find_line(match.start()), match.start())


class _LineTable:
    """Which line of the source does a place of the spliced text come from?"""

    def __init__(self, starts: Sequence[int], lines: Sequence[int]) -> None:
        self._starts = starts
        self._lines = lines

    def find_line(self, place: int) -> int:
        return self._lines[bisect_right(self._starts, place) - 1]


def _splice_lines(source: str) -> tuple[str, _LineTable]:
    """The text without spliced line ends, and where its lines come from."""
    pieces = _SPLICE.split(source)
    starts, lines, place, line = [0], [1], 0, 1
    for number, piece in enumerate(pieces):
        if number:
            line += 1
            starts.append(place)
            lines.append(line)
        for character in re.finditer("\n", piece):
            line += 1
            starts.append(place + character.end())
            lines.append(line)
        place += len(piece)
    return "".join(pieces), _LineTable(starts, lines)
