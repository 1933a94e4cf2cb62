"""Manuals of languages, read and cut into passages. Which of them a prompt quotes is `agents.manual`'s.

Markdown, plain text, HTML and PDF with text. A passage is some blocks of one section under its headings; code stays
whole, and a longer table is cut between rows, each part under its head. A manual may be anybody's: files are read
within limits, links are not followed, HTML and PDF are read in a confined process (`extraction`), and no text of a
passage is a mark of chat formats.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from opsmith.errors import TaskError
from opsmith.outside import read_text
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, find_python, run_commands

PASSAGE = 700  # characters, from which on a section goes on in another passage
MOST_TITLE = 120  # characters
MOST_TEXT = 8 << 20  # bytes of a file of text, and of what is taken out of another one
MOST_FILE = 64 << 20  # bytes of a file of HTML or PDF
EXTRACTED, WRITTEN = (".html", ".htm", ".pdf"), (".md", ".txt")
_SECONDS = 300  # of extraction, and of its processor time
_SCRIPT = Path(__file__).parent / "extraction.py"
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r"(=+|-{3,}|~{3,})[ \t]*")
_NUMBER = r"(?:Chapter|Section|Appendix|Part) +(\w+(?:\.\d+)*)|([A-Z]?\d+(?:\.\d+)*|[A-Z](?:\.\d+)+)"
_NUMBERED = re.compile(rf"(?:{_NUMBER})[.:]? +\w[^\n]{{0,90}}[^.;:,\n]")  # a line that stands alone
_HEAD = re.compile(r".*\n[ \t]*\|[ \t:|-]+\n")  # of a table
_LEADERS = re.compile(r"(?=[^\n]{5,200}$)[^\n]*?(?:\. ?){5}[. |]*\w*[ |]*")  # a line of a table of contents
_CHAT = re.compile(r"<[|｜]|[|｜]>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>")
_LIGATURE = re.compile("[\ufb00-\ufb06]")


def read_manual(paths: Sequence[Path]) -> Mapping[str, str]:
    """The passages of those files by title, in their order. Raises TaskError."""
    passages: dict[str, str] = {}
    counts = Counter[str]()
    for path in paths:
        cut = list(_cut_passages(path.stem, _read_file(path), path.suffix.lower() != ".md"))
        if not cut:
            raise TaskError(f"{path}: given no text but headings; expected a manual; try: another form of it")
        for title, text in cut:
            counts[title] += 1
            unique = title if counts[title] == 1 else f"{title} ({counts[title]})"
            passages[unique if unique not in passages else f"{unique} ({len(passages)})"] = text
    return passages


def _read_file(path: Path) -> str:
    """Its text as Markdown, without what is no text."""
    suffix = path.suffix.lower()
    if path.is_symlink():  # what it leads to would be sent to a model
        raise TaskError(f"{path}: given a symbolic link; expected the manual itself; try: copy it there")
    if not path.exists():
        raise TaskError(f"{path}: does not exist; expected a manual: a file {', '.join((*WRITTEN, *EXTRACTED))}")
    if suffix not in {*WRITTEN, *EXTRACTED}:
        expected = ", ".join((*WRITTEN, *EXTRACTED))
        raise TaskError(
            f"{path}: given a file {path.suffix!r}; expected one of {expected}; try: convert it to Markdown"
        )
    text = _extract_text(path, suffix) if suffix in EXTRACTED else read_text(path, MOST_TEXT)
    if "\0" in text:
        raise TaskError(f"{path}: given a NUL character; expected text")
    text = _LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text.replace("\u00ad", ""))
    text = "".join(char if char.isprintable() or char in "\n\t" else " " for char in text.replace("\f", "\n"))
    return _CHAT.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def _extract_text(path: Path, suffix: str) -> str:
    """What `extraction` makes of it. Raises TaskError."""
    if not path.is_file() or path.stat().st_size > MOST_FILE:
        raise TaskError(f"{path}: cannot be read; expected a regular file of at most {MOST_FILE >> 20} MiB")
    parser = find_spec("pypdf")
    if suffix == ".pdf" and (parser is None or parser.origin is None):
        raise TaskError(f"{path}: PDF is read by pypdf, which is not installed; try: pip install pypdf")
    packages = Path(parser.origin).parents[1] if parser is not None and parser.origin is not None else _SCRIPT.parent
    python, readable = find_python()
    given = f"manual{suffix.replace('.htm', '.html').replace('htmll', 'html')}"
    order = CommandOrder(
        {given: path.read_bytes()},
        [[python, "-S", "-P", str(_SCRIPT), given, "manual.md"]],
        ["manual.md"],
        {"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        [*readable, packages, _SCRIPT],
        has_processes=False,
    )
    result = run_commands(order, CommandLimits(_SECONDS, _SECONDS, 3 << 30, file_bytes=MOST_TEXT))
    if isinstance(result, CommandFailure):
        raise TaskError(f"{path}: cannot be read: {result.reason}; try: convert it to Markdown")
    if not result.is_ended_well or "manual.md" not in result.files:
        messages = result.messages.strip().splitlines() or [f"more than {result.limit}" if result.limit else "no text"]
        raise TaskError(f"{path}: cannot be read as a manual: {messages[-1]}")
    return result.files["manual.md"].decode("utf-8", "replace")


def _cut_passages(name: str, text: str, is_plain: bool) -> Iterator[tuple[str, str]]:
    """Titles, the headings from the outermost, with what stands under them. `is_plain`: numbers may mark headings."""
    headings: list[tuple[int, str]] = []
    blocks: list[str] = []

    def close() -> Iterator[tuple[str, str]]:
        if blocks:
            title = " > ".join([name, *(words for _, words in headings)])
            yield title if len(title) <= MOST_TITLE else f"...{title[-MOST_TITLE:]}", "\n\n".join(blocks)
            blocks.clear()

    for block in _cut_blocks(text):
        heading = _HEADING.fullmatch(block)
        numbered = _NUMBERED.fullmatch(block) if is_plain and heading is None else None
        if heading or numbered:
            yield from close()
            depth = len(heading[1]) if heading else 1 + (numbered[1] or numbered[2]).count(".") if numbered else 1
            words = " ".join((heading[2] if heading else block).split()).strip("# ")
            headings = [*(outer for outer in headings if outer[0] < depth), (depth, words)]
            continue
        for piece in _cut_block(block):
            if blocks and sum(map(len, blocks)) + len(piece) > PASSAGE:
                yield from close()
            blocks.append(piece)
    yield from close()


def _cut_blocks(text: str) -> Iterator[str]:
    """Headings, paragraphs, tables and fenced code, which may have blank lines."""
    lines: list[str] = []
    fence = ""
    for line in [*text.splitlines(), ""]:
        mark = re.match(r"[ \t]*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and _UNDERLINE.fullmatch(line) and len(lines) == 1 and "|" not in lines[0]:
            yield f"{'#' if line[0] == '=' else '##'} {lines.pop().strip()}"
            continue
        elif not fence and (not line.strip() or _HEADING.fullmatch(line) or _LEADERS.fullmatch(line)):
            if lines:
                yield "\n".join(lines)
            lines = []
            if _HEADING.fullmatch(line) and not _LEADERS.fullmatch(line):
                yield line
            continue
        lines.append(line)
    if lines:  # code whose fence was never closed
        yield "\n".join(lines)


def _cut_block(block: str) -> Iterator[str]:
    """Pieces of at most so many characters as a passage has: of prose at ends of sentences, of a table between rows,
    each under its head. Code stays whole, and so does a row."""
    is_code = block.lstrip()[:3] in {"```", "~~~"}
    is_table = all(line.lstrip().startswith("|") for line in block.splitlines())
    head = match[0] if is_table and (match := _HEAD.match(block)) else ""
    start, most = len(head), max(PASSAGE - len(head), PASSAGE // 2)
    while len(block) - start > most and not is_code:
        window = block[start : start + most]
        ends = [match.end() for match in re.finditer(r"\n" if is_table else r"(?<=[.!?;:])\s|\n", window)]
        if ends:
            at = start + ends[-1]
        elif is_table:  # a row is longer
            at = block.find("\n", start) + 1 or len(block)
        else:
            at = start + (window.rfind(" ") + 1 or most)
        yield head + block[start:at].rstrip()
        start = at
    yield head + block[start:]
