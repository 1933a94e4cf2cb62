"""The text of a manual in HTML or PDF, as Markdown: headings, tables and code stay what they are.

`python extraction.py FILE OUTPUT` in a confined process, since a file may be anybody's and its parser has faults of its
own. It imports nothing of ours. What is wrong with the file is the last line that it prints; the exit code is then 1.
Not covered: columns of prose beside each other, and pictures of text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

MOST_PAGES = 5_000
FEWEST_CHARS = 10  # of a page, on average: with less a PDF is pictures of pages
_SKIPPED = {"script", "style", "head", "nav", "footer", "svg", "template", "noscript", "button"}
_BLOCKS = re.compile("p|div|section|article|main|[uod]l|d[td]|blockquote|figure|[bh]r|form|h[1-6]")
_MONOSPACED = re.compile(r"mono|courier|consol|typewriter|cmtt|code", re.IGNORECASE)


def read_html(data: bytes) -> str:
    """The text of a page as Markdown, without what leads to other pages."""
    stated = re.search(rb"""charset=["']?([\w-]+)""", data[:4096])
    try:
        text = data.decode(stated[1].decode() if stated else "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    page = _Page()
    page.feed(text)
    page.close()
    return "".join(page.texts)


class _Page(HTMLParser):
    """Writes Markdown while it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._skipped = 0  # open elements whose content is no text of the page
        self._code: list[str] | None = None  # of an open `pre`
        self._rows: list[list[str]] = []  # of the outermost open table
        self._tables = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag == "table":
            self._tables += 1
        elif tag == "tr" and self._tables == 1:
            self._rows.append([])
        elif tag in {"td", "th"} and self._tables == 1:
            self._rows = self._rows or [[]]
            self._rows[-1].append("")
        elif tag == "pre":
            self._code = []
        elif re.fullmatch("h[1-6]", tag):
            self._write(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self._write("\n- ")
        elif _BLOCKS.fullmatch(tag):
            self._write("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag == "table" and self._tables:
            self._tables -= 1
            if not self._tables:
                rows, self._rows = [row for row in self._rows if any(map(str.strip, row))], []
                self._write("\n\n" + "\n".join(write_table(rows)) + "\n\n")
        elif tag == "pre" and self._code is not None:
            code, self._code = "".join(self._code).strip("\n"), None
            fence = "~~~~" if "```" in code else "```"
            self._write(f"\n\n{fence}\n{code}\n{fence}\n\n")
        elif _BLOCKS.fullmatch(tag):
            self._write("\n\n")

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._code is not None:
            self._code.append(data)
        else:
            self._write(re.sub(r"\s+", " ", data))

    def _write(self, text: str) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] += " ".join(text.split("\n"))
        else:
            self.texts.append(text)


def write_table(rows: list[list[str]]) -> Iterator[str]:
    """The lines of a Markdown table; its first row is the head."""
    for number, row in enumerate(rows):
        yield "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |"
        if not number:
            yield "|" + "---|" * len(row)


# -- PDF


class _Piece(NamedTuple):
    """A text of one font on a page, in points from its lower left corner."""

    x: float
    y: float
    size: float
    is_code: bool
    is_bold: bool
    text: str


class _Line(NamedTuple):
    """What stands on one height of a page. `cells`: its texts where wide gaps part them."""

    cells: list[str]
    y: float
    size: float
    is_code: bool
    is_bold: bool
    x: float

    @property
    def text(self) -> str:
        return " ".join(self.cells)


def read_pdf(path: str) -> str:
    """The text of a PDF as Markdown. Bookmarks and larger or bold lines are headings. Raises ValueError."""
    import pypdf  # noqa: PLC0415 - only where there is a PDF

    reader = pypdf.PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("it is encrypted; try: a copy without a password")
    if len(reader.pages) > MOST_PAGES:
        raise ValueError(
            f"it has {len(reader.pages)} pages; expected at most {MOST_PAGES}; try: the chapters that matter"
        )
    pages = [list(_read_lines(page)) for page in reader.pages]
    if sum(len(line.text) for page in pages for line in page) < FEWEST_CHARS * max(1, len(pages)):
        raise ValueError(f"it has no text: its {len(pages)} pages are pictures; try: a text recognition (OCR) first")
    repeated = Counter(re.sub(r"\d+", "0", line.text) for page in pages for line in (*page[:2], *page[2:][-2:]))
    often = {text for text, count in repeated.items() if count > max(2, len(pages) // 4)}  # heads and feet of pages
    lines = [
        [line for at, line in enumerate(page) if 1 < at < len(page) - 2 or re.sub(r"\d+", "0", line.text) not in often]
        for page in pages
    ]
    try:
        bookmarks = dict(_list_bookmarks(reader.outline))
    except Exception:
        bookmarks = {}
    return "\n".join(_write_markdown([line for page in lines for line in [*page, None]], bookmarks))


def _list_bookmarks(outline: Any, depth: int = 1) -> Iterator[tuple[str, int]]:
    for entry in outline:
        if isinstance(entry, list):
            yield from _list_bookmarks(entry, depth + 1)
        elif entry.title:
            yield _squeeze(entry.title), min(depth, 6)


def _squeeze(text: str) -> str:
    return "".join(text.split()).casefold()


def _read_lines(page: Any) -> Iterator[_Line]:
    pieces: list[_Piece] = []

    def keep(text: str, cm: Any, tm: Any, font: Any, size: float) -> None:
        if text.strip():
            scale = abs(tm[3] * cm[3]) or abs(tm[1] * cm[2]) or 1.0
            name = str((font or {}).get("/BaseFont", ""))
            x, y = tm[4] * cm[0] + tm[5] * cm[2] + cm[4], tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
            is_bold = bool(re.search("bold|black|heavy", name, re.IGNORECASE))
            pieces.append(
                _Piece(x, y, round(size * scale, 1), bool(_MONOSPACED.search(name)), is_bold, text.strip("\n"))
            )

    page.extract_text(visitor_text=keep)
    rows: list[list[_Piece]] = []
    for piece in sorted(pieces, key=lambda piece: -piece.y):
        if rows and abs(rows[-1][0].y - piece.y) < 0.4 * max(piece.size, 1.0):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    for row in rows:
        row.sort(key=lambda piece: piece.x)
        largest = max(row, key=lambda piece: len(piece.text.strip()))
        cells, end = [row[0].text], _find_end(row[0])
        for piece in row[1:]:
            if piece.x - end > 1.2 * piece.size and not piece.is_code:
                cells.append(piece.text.lstrip())
            else:
                cells[-1] += (
                    piece.text if cells[-1].endswith(" ") or piece.x - end < 0.15 * piece.size else f" {piece.text}"
                )
            end = _find_end(piece)
        is_code = all(piece.is_code for piece in row)
        is_bold = all(piece.is_bold for piece in row)
        yield _Line([cell.rstrip() for cell in cells], row[0].y, largest.size, is_code, is_bold, row[0].x)


def _find_end(piece: _Piece) -> float:
    """About where a text ends: no widths of characters are read."""
    return piece.x + len(piece.text) * piece.size * (0.6 if piece.is_code else 0.48)


def _write_markdown(lines: list[_Line | None], bookmarks: dict[str, int]) -> Iterator[str]:
    """None in `lines` ends a page."""
    real = list(filter(None, lines))
    sizes = Counter[float]()
    for each in real:
        sizes[each.size] += len(each.text)
    body = sizes.most_common(1)[0][0]
    larger = sorted({each.size for each in real if each.size > 1.08 * body and not each.is_code}, reverse=True)
    depths = {size: min(depth, 5) for depth, size in enumerate(larger, 1)}
    last: _Line | None = None
    kind, margin = "", 0.0
    for line in lines:
        if line is None:
            last = None
            continue
        new = _find_kind(line, depths, bookmarks)
        margin = margin if new == kind else line.x
        gap = (last.y - line.y) / line.size if last is not None else 0.0
        if new != kind or new.startswith("#") or (gap > 1.7 and new != "code"):
            yield from ["```"] if kind == "code" and new != "code" else []
            yield ""
            yield from ["```"] if new == "code" and kind != "code" else []
        if new.startswith("#"):
            yield from (f"{new} {line.text}", "")
        elif new == "row":
            yield "| " + " | ".join(line.cells) + " |"
        else:
            yield " " * (round((line.x - margin) / (0.6 * line.size)) if new == "code" else 0) + line.text
        kind, last = new, line
    yield from ["```"] if kind == "code" else []


def _find_kind(line: _Line, depths: dict[float, int], bookmarks: dict[str, int]) -> str:
    """`code`, `row` (of a table), `text`, or the `#` of a heading."""
    if depth := bookmarks.get(_squeeze(line.text)):
        return "#" * depth
    if line.is_code:
        return "code"
    if len(line.cells) > 1 and not re.match(r"[\dA-Z][\d.]*$", line.cells[0]):
        return "row"
    if line.size in depths and len(line.text) < 150:
        return "#" * depths[line.size]
    if line.is_bold and len(line.text) < 100 and len(line.cells) < 3 and not bookmarks and line.text[-1:] not in ".,;:":
        return "#" * 6
    return "row" if len(line.cells) > 1 else "text"


def main(source: str, output: str) -> int:
    try:
        text = read_pdf(source) if source.endswith(".pdf") else read_html(Path(source).read_bytes())
    except MemoryError:
        raise
    except Exception as error:
        print(" ".join(str(error).split())[:300] or type(error).__name__, file=sys.stderr)
        return 1
    Path(output).write_text(text, encoding="utf-8", errors="replace")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
