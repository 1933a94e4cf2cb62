"""The `return` that a program's last line was meant to be: what a message suggests for `retrn E2` or `print(E2)`."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Iterator, Sequence

_AFTER_A_WORD = re.compile(r"([^\W\d]\w*)[ \t]*[: \t(][ \t]*(\S.*)")
_GLUED = re.compile(r"[Rr]eturn([^\W\d]\w*)")


def meant_return(rows: Sequence[str], line: int, known_names: Collection[str]) -> str:
    """A `return` of names that the program has, for its last line; "" where `line` is another, or nothing is known.

    >>> meant_return(["E1 = step.Repeat(n=D).apply(E0)", "retrn E1"], 2, ["E0", "D"])
    'return E1'
    """
    code = [number for number, row in enumerate(rows, 1) if row.strip() and not row.lstrip().startswith("#")]
    if not code or line < code[-1]:
        return ""
    last = rows[code[-1] - 1].strip()
    names = _assigned_names("\n".join(rows[: code[-1]])) or _assigned_names("\n".join(rows[: code[-1] - 1]))
    readings = (reading for reading in _list_readings(last) if _returns_names(reading, {"step", *known_names, *names}))
    return next(readings, f"return {names[-1]}" if names else "")


def _list_readings(last: str) -> Iterator[str]:
    """What a last line may mean: itself without its indentation, what follows a word, or its own value."""
    yield last
    if (match := _GLUED.fullmatch(last)) is not None:
        yield f"return {match[1]}"
    match = _AFTER_A_WORD.fullmatch(last)
    if match is not None and not keyword.iskeyword(match[1].lower()):
        yield f"return {match[2]}"
        yield f"return {match[2].removesuffix(')')}"  # of `print(E2)`
    if match is not None and match[1].lower() in {"return", "yield"}:
        yield f"return {match[2]}"
    yield f"return {last}"


def _returns_names(text: str, known_names: Collection[str]) -> bool:
    """Whether a text is a return whose every name is known."""
    body = _parse_statements(text)
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return False
    names = [node.id for node in ast.walk(body[0]) if isinstance(node, ast.Name)]
    return bool(names) and all(name in known_names for name in names)


def _assigned_names(text: str) -> list[str]:
    """The names that a program's statements assign, in order."""
    targets = [target for each in _parse_statements(text) if isinstance(each, ast.Assign) for target in each.targets]
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _parse_statements(text: str) -> list[ast.stmt]:
    """[] for a text that does not parse."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return []
