"""Literals of Python: how texts that come from outside are written into modules, so that they stay texts."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def write_literal(text: str, indent: int) -> str:
    """A string literal that holds exactly this text: in triple quotes at the margin, where nothing needs an escape."""
    lines = text.split("\n")
    plain = all(line.isprintable() for line in lines) and "\\" not in text and '"""' not in text
    if indent == 0 and plain and text.endswith("\n"):
        written = f'"""\\\n{text}"""'
    elif len(lines) <= 1 or (len(lines) == 2 and not lines[1]):
        written = repr(text)
    else:
        rows = [repr(line) for line in text.splitlines(keepends=True)]
        written = "\n".join(["(", *(f"{' ' * (indent + 4)}{row}" for row in rows), f"{' ' * indent})"])
    assert ast.literal_eval(written) == text, "a text changed on its way into a literal"
    return written


def write_docstring(lines: Iterable[str]) -> str:
    """The docstring of a function as a literal that ends where it should, whatever its lines are."""
    first, *others = "\n".join(lines).split("\n")
    text = "\n".join([first, *(f"    {line}".rstrip() for line in others), "    "])
    is_plain = all(line.isprintable() for line in text.split("\n")) and "\\" not in text and '"""' not in text
    written = f'"""{text}"""' if is_plain else repr(text)
    assert ast.literal_eval(written) == text, "a text changed on its way into a docstring"
    return written


def bracket_rows(opening: str, rows: Iterable[str], closing: str, indent: int) -> str:
    """An expression in brackets, each of its rows on a line."""
    return "\n".join([opening, *(f"{' ' * (indent + 4)}{row}," for row in rows), f"{' ' * indent}{closing}"])
