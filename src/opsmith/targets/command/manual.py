"""The manual of a language, read and cut into passages. Which of them a prompt quotes is `agents.manual`'s.

Markdown and plain text. A passage is some blocks of one section under its headings; a table and fenced code are a block
each and stay whole. A manual may be anybody's: files are read within limits, and links are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opsmith.errors import TaskError
from opsmith.outside import read_text

PASSAGE = 1000  # characters, from which on a section goes on in another passage
MOST_TITLE = 120  # characters
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")


def read_manual(paths: Sequence[Path]) -> Mapping[str, str]:
    """The passages of those files by title, in their order. Raises TaskError."""
    passages: dict[str, str] = {}
    for path in paths:
        for title, text in _cut_passages(path.stem, _read_file(path)):
            unique, count = title, 1
            while unique in passages:
                count += 1
                unique = f"{title} ({count})"
            passages[unique] = text
    return passages


def _read_file(path: Path) -> str:
    if path.is_symlink():  # what it leads to would be sent to a model
        raise TaskError(f"{path}: given a symbolic link; expected the manual itself; try: copy it there")
    if not path.exists():
        raise TaskError(f"{path}: does not exist; expected a manual: a .md or .txt file")
    if path.suffix.lower() not in {".md", ".txt"}:
        raise TaskError(f"{path}: given a file {path.suffix!r}; expected .md or .txt; try: convert it to Markdown")
    text = read_text(path)
    if "\0" in text:
        raise TaskError(f"{path}: given a NUL character; expected text")
    return text


def _cut_passages(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Titles, the headings from the outermost, with what stands under them."""
    headings: list[tuple[int, str]] = []
    blocks: list[str] = []

    def close() -> Iterator[tuple[str, str]]:
        if blocks:
            title = " > ".join([name, *(words for _, words in headings)])
            yield title[:MOST_TITLE], "\n\n".join(blocks)
            blocks.clear()

    for block in _cut_blocks(text):
        if heading := _HEADING.fullmatch(block):
            yield from close()
            depth = len(heading[1])
            headings = [*(outer for outer in headings if outer[0] < depth), (depth, heading[2].strip(" \t#"))]
            continue
        if blocks and sum(map(len, blocks)) + len(block) > PASSAGE:
            yield from close()
        blocks.append(block)
    yield from close()


def _cut_blocks(text: str) -> Iterator[str]:
    """Headings, paragraphs, tables and fenced code, which may have blank lines."""
    lines: list[str] = []
    fence = ""
    for line in [*text.splitlines(), ""]:
        mark = re.match(r"[ \t]*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (not line.strip() or _HEADING.fullmatch(line)):
            if lines:
                yield "\n".join(lines)
            lines = []
            if line.strip():
                yield line
            continue
        lines.append(line)
    if lines:  # code whose fence was never closed
        yield "\n".join(lines)
