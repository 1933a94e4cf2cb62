"""What is a text without the indentation that all its lines share? As `textwrap.dedent`, for text of any origin.

That one makes a regular expression of the indentation, which takes seconds where it is long, and keeps it for good.
"""

from __future__ import annotations

from collections.abc import Sequence


def dedent(text: str) -> str:
    """The text without common indentation; lines of nothing but blanks become empty and do not count.

    >>> dedent("    a\\n      b\\n \\n")
    'a\\n  b\\n\\n'
    """
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    width = _common([line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line])
    return "\n".join(line[width:] for line in lines)


def _common(indentations: Sequence[str]) -> int:
    """The length of the common prefix, which is that of the first and the last in the order of the alphabet."""
    first, last = min(indentations, default=""), max(indentations, default="")
    pairs = enumerate(zip(first, last, strict=False))
    return next((at for at, (one, other) in pairs if one != other), len(first))
