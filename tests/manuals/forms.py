"""A Markdown manual as a page of HTML and as a PDF, written by hand: type sizes and fonts are all that marks its parts."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator

SIZES = {1: 20, 2: 16, 3: 13}  # points, of headings by depth
LINES = 46  # of a page


def list_blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """`h1` to `h6`, `code`, `table` or `p`, each with its lines."""
    for block in re.findall(r"^```\n[\s\S]*?^```$|(?:^(?!```).+\n?)+", text, re.MULTILINE):
        lines = block.strip("\n").split("\n")
        if lines[0].startswith("#"):
            yield f"h{len(lines[0].split(' ')[0])}", [lines[0].lstrip("# ")]
        elif lines[0] == "```":
            yield "code", lines[1:-1]
        else:
            yield "table" if lines[0].startswith("|") else "p", lines


def split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def write_html(text: str) -> str:
    parts = ["<!doctype html><html><head><title>m</title><style>p {}</style></head><body><nav><a>Home</a></nav>"]
    for kind, lines in list_blocks(text):
        if kind == "table":
            rows = [split_row(line) for line in lines if "---" not in line]
            cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
        else:
            tag = {"code": "pre"}.get(kind, kind)
            parts.append(f"<{tag}>{html.escape(chr(10).join(lines))}</{tag}>")
    return "\n".join([*parts, "<footer>1999</footer></body></html>"])


def write_pdf(text: str) -> bytes:
    """Pages with a head and a number, headings in larger bold type, code in Courier, tables in columns."""
    rows: list[list[tuple[int, str, int, str]]] = []  # of texts with their place, font and size
    for kind, lines in list_blocks(text):
        rows.append([])
        if kind[0] == "h":
            rows.append([(60, "B", SIZES.get(int(kind[1]), 11), lines[0])])
        elif kind == "code":
            rows += [[(60, "C", 9, line)] for line in lines]
        elif kind == "table":
            rows += [
                [(60 + 150 * at, "R", 10, cell) for at, cell in enumerate(split_row(line))]
                for line in lines
                if "---" not in line
            ]
        else:
            rows += [
                [(60, "R", 10, line)] for paragraph in lines for line in textwrap.wrap(paragraph.replace("**", ""), 88)
            ]
    pages = [rows[at : at + LINES] for at in range(0, len(rows), LINES)]
    return join_objects([draw_page(number, page) for number, page in enumerate(pages, 1)])


def draw_page(number: int, rows: list[list[tuple[int, str, int, str]]]) -> bytes:
    head = [(60, "R", 8, "A manual of a chip"), (500, "R", 8, f"{number}")]
    places = [(770, head), *((740 - 15 * at, row) for at, row in enumerate(rows))]
    texts = [
        f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escape(words)}) Tj ET"
        for y, row in places
        for x, font, size, words in row
    ]
    return "\n".join(texts).encode("latin-1", "replace")


def escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def join_objects(streams: list[bytes]) -> bytes:
    """The file of pages with those contents, its table of places at the end."""
    fonts = {"R": "Helvetica", "B": "Helvetica-Bold", "C": "Courier"}
    kids = " ".join(f"{6 + 2 * at} 0 R" for at in range(len(streams)))
    named = " ".join(f"/{name} {at} 0 R" for at, name in enumerate(fonts, 3))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(streams)}/Kids[{kids}]>>".encode()]
    objects += [
        f"<</Type/Font/Subtype/Type1/Encoding/WinAnsiEncoding/BaseFont/{font}>>".encode() for font in fonts.values()
    ]
    for at, stream in enumerate(streams):
        resources = f"/MediaBox[0 0 612 792]/Resources<</Font<<{named}>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R{resources}/Contents {7 + 2 * at} 0 R>>".encode())
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
    written, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>"
    return written + f"{head}\nstartxref\n{len(written)}\n%%EOF\n".encode()
