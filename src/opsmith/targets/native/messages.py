"""What compilers say, made fit for findings: one line of it, advice by its words, the line of the source it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from opsmith.records import Diagnostic, printable

LONGEST = 300  # characters of one message
Advice = Sequence[tuple[str, str, str]]  # pattern of a message, what is expected, what to try; {0}: its first group

_PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+)")


def join_line(text: str) -> str:
    """A text on one printable line."""
    return printable(" ".join(text.split()))


def hide_paths(text: str) -> str:
    """The same without paths of this machine: the names of their files remain."""
    return _PATH.sub(r"\1", join_line(text))


def cut_line(line: str) -> str:
    """What is shown of a long line."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


def choose_advice(message: str, table: Advice, clean: Callable[[str], str], otherwise: str) -> tuple[str, str]:
    """What is expected, and what to try, by the first pattern that is in a message; `otherwise`: expected of others."""
    for pattern, expected, remedy in table:
        match = re.search(pattern, message)
        if match is not None:
            names = [clean(name or "") for name in match.groups()]
            return expected.format(*names), remedy.format(*names)
    return otherwise, ""


def show_line(lines: Sequence[str], number: int | None) -> str:
    """A line of a source by its number from 1; "" where there is none."""
    if number is None or not 1 <= number <= len(lines):
        return ""
    return printable(lines[number - 1].strip()[:LONGEST])


def place_finding(finding: Diagnostic, pattern: str, lines: Sequence[str]) -> Diagnostic:
    """The finding at the first line that has a pattern."""
    number = next((number for number, line in enumerate(lines, 1) if re.search(pattern, line)), None)
    return replace(finding, line=number, text=show_line(lines, number))
