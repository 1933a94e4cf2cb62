"""A text without the indentation that all its lines share: `textwrap.dedent` for text of any origin.

That one makes a regular expression of the indentation, which takes seconds where it is long, and keeps it for good.
"""

from __future__ import annotations


def strip_indentation(text: str) -> str:
    """The text without common indentation; lines of nothing but blanks become empty and do not count.

    >>> strip_indentation("    a\\n      b\\n \\n")
    'a\\n  b\\n\\n'
    """
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    indentations = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    first, last = min(indentations, default=""), max(indentations, default="")  # their common prefix is that of all
    width = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return "\n".join(line[width:] for line in lines)
