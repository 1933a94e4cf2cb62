"""The fenced blocks of a Markdown text, read more leniently than CommonMark does, as models' replies need it."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t]*(?:(?:[-*]|\d+[.)])[ \t]+)?(`{3,}|~{3,})([^`]*)")


def list_fenced_blocks(text: str) -> list[str]:
    """The contents of the fences in order, empty ones left out; a fence that is never closed runs to the end.

    >>> list_fenced_blocks("Here:\\n```python\\nreturn E0\\n```")
    ['return E0\\n']
    """
    if "```" not in text and "~~~" not in text:
        return []
    blocks: list[list[str]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line.rstrip())
        if not fence:
            if match:
                fence = match[1]
                blocks.append([])
        elif match and match[1].startswith(fence) and not match[2]:
            fence = ""
        elif line.rstrip().endswith(fence):  # "return E1```": the fence was glued to the last line
            blocks[-1].append(line.rstrip().rstrip(fence[0]) + "\n")
            fence = ""
        else:
            blocks[-1].append(line)
    joined = ("".join(lines) for lines in blocks)
    return [block for block in joined if block.strip()]


def drop_fenced(text: str, word: str) -> str:
    """The text without the blocks of that info word, and without what is fenced in them.

    >>> drop_fenced("a\\n```plan\\n1\\n```c\\n2\\n```\\n```\\nb", "plan")
    'a\\nb'
    """
    lines: list[str] = []
    fences: list[str] = []  # that are open: more than one only in a block to be dropped
    dropping = False
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line.rstrip())
        if match and (not fences or (dropping and match[2])):
            dropping = dropping or match[2].strip() == word
            fences.append(match[1])
            lines += [] if dropping else [line]
            continue
        lines += [] if dropping else [line]
        is_end = (
            match[1].startswith(fences[-1]) and not match[2] if match else line.rstrip().endswith(tuple(fences[-1:]))
        )
        if is_end:
            fences.pop()
            dropping = dropping and bool(fences)
    return "".join(lines)
