"""WGSL as tokens: every one with its line and its place in the text. Comments (`/* */` nests) are no tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME, NUMBER, MARK, ODD = "name", "number", "mark", "odd"

_PIECE = re.compile(
    r"""
    (?P<comment>//[^\n\v\f\r\x85\u2028\u2029]*|/\*)
    |(?P<number>0[xX][0-9a-fA-F]*(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?[iufh]?
       |(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[iufh]?)
    |(?P<name>[^\W\d]\w*)
    |(?P<mark>->|\+\+|--|&&|\|\||[=!<>+\-*/%&|^]=|[-+*/%&|^!~<>=()\[\]{},;:.@])
    |(?P<space>\s+)
    |(?P<odd>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BOUND = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class WgslToken:
    """One word, number or mark. `>>` is two marks, since it may close two templates; so is `<<`."""

    text: str
    kind: str  # NAME, NUMBER, MARK or ODD
    line: int  # from 1
    start: int  # in the text
    end: int


def split_source(source: str) -> list[WgslToken]:
    """All tokens; of a comment that nobody closes there is one of the kind ODD."""
    return list(_walk_source(source))


def _walk_source(source: str) -> Iterator[WgslToken]:
    place, line = 0, 1
    while match := _PIECE.match(source, place):
        kind, end = str(match.lastgroup), match.end()
        if match[0] == "/*":
            end = _find_comment_end(source, place)
            if end < 0:
                yield WgslToken("/*", ODD, line, place, len(source))
                return
        elif kind not in ("comment", "space"):
            yield WgslToken(match[0], kind, line, place, end)
        line += source.count("\n", place, end)
        place = end


def _find_comment_end(source: str, start: int) -> int:
    """Behind the comment that begins there; -1: it has no end."""
    depth = 0
    for match in _BOUND.finditer(source, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return -1


def blank_comments(source: str) -> str:
    """The text with blanks for comments; what is left stands where it stood.

    >>> blank_comments("a /* b /* c */ */ d // e")
    'a                 d     '
    """
    pieces, place = [], 0
    for token in split_source(source):
        pieces += [_blank_text(source[place : token.start]), token.text]
        place = token.start + len(token.text)
    return "".join([*pieces, _blank_text(source[place:])])


def _blank_text(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
