"""Pictures of figures of numbers: SVG with text as text, PNG of 300 dots an inch, PDF.

The same data gives the same bytes of SVG and PNG, and the same picture as PDF. No request is made: vl-convert brings
all it needs.
"""

from __future__ import annotations

import html
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

from opsmith.report.figure_style import (
    INK,
    PRINT_DPI,
    SCREEN_DPI,
    SMALL_SIZE,
    TITLE_SIZE,
    Theme,
    choose_ink,
    wrap_text,
    write_config,
)

Spec = dict[str, Any]

VEGA_LITE = "5.21"
_PNG = b"\x89PNG\r\n\x1a\n"
_ROLES = re.compile(r' (role|aria-\w+|class|pointer-events)="[^"]*"')  # parts that no screen reader can name


def annotate_figure(spec: Spec, lines: Sequence[str], title: str | None = None) -> Spec:
    """The figure with small lines under its title: what made it, how many, which seeds. `title`: another one for it."""
    text = spec["title"] if title is None else title
    return {**spec, "title": {"text": text, "subtitle": [line for line in lines if line]}}


def render_svg(spec: Spec, theme: Theme = "page") -> str:
    """The figure as one `<svg>` element with its title and description."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    text: str = vl_convert.vegalite_to_svg(write_vega_lite(spec, theme), vl_version=VEGA_LITE)
    return _name_picture(text, spec)


def render_png(spec: Spec) -> bytes:
    """The figure on white, as a printer needs it."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    scale = 72 / SCREEN_DPI  # vl-convert counts 72 pixels an inch
    picture = write_vega_lite(spec, "paper")
    data: bytes = vl_convert.vegalite_to_png(picture, vl_version=VEGA_LITE, scale=scale, ppi=PRINT_DPI)
    return _repack_png(data)


def render_pdf(spec: Spec) -> bytes:
    """The figure on white, for a paper, with text as text."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    picture = write_vega_lite(spec, "paper")
    data: bytes = vl_convert.vegalite_to_pdf(picture, vl_version=VEGA_LITE)
    return data


def convert_svg(picture: str, kind: str) -> bytes:
    """An SVG of ours as `png`, of twice a screen's dots, or as `pdf`."""
    import vl_convert  # noqa: PLC0415  (takes 0.4 s)

    if kind == "pdf":
        return bytes(vl_convert.svg_to_pdf(picture))
    return _repack_png(vl_convert.svg_to_png(picture, scale=2.0, ppi=72))


def write_vega_lite(spec: Spec, theme: Theme) -> str:
    """Vega-Lite's text: with the theme's ink, and the title in lines that fit."""
    background = None if theme == "page" else "#ffffff"
    themed = {**spec, "title": _wrap_title(spec), "background": background, "config": write_config(theme)}
    return json.dumps(themed).replace(json.dumps(INK), json.dumps(choose_ink(theme)))


def _repack_png(picture: bytes) -> bytes:
    """The same picture in a fifth of the bytes: vl-convert packs fast and loosely."""
    chunks, place = [], len(_PNG)
    while place < len(picture):
        length = int.from_bytes(picture[place : place + 4], "big")
        chunks.append((picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]))
        place += 12 + length
    pixels = zlib.compress(zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT")), 6)
    before = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    return _PNG + b"".join(_write_chunk(*chunk) for chunk in (*before, (b"IDAT", pixels), (b"IEND", b"")))


def _write_chunk(name: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")


def _wrap_title(spec: Spec) -> Any:
    heading, lines = _read_title(spec)
    width = spec["usermeta"]["width"]
    if not heading and not lines:
        return None
    small = [row for line in lines for row in wrap_text(line, width, SMALL_SIZE)]
    title = wrap_text(heading, width, TITLE_SIZE * 1.08)  # it is bold
    return {"text": title, "subtitle": small}


def _read_title(spec: Spec) -> tuple[str, list[str]]:
    title = spec["title"]
    return (title, []) if isinstance(title, str) else (title["text"], title["subtitle"])


def _name_picture(text: str, spec: Spec) -> str:
    """The picture with what a screen reader says of it."""
    heading, lines = _read_title(spec)
    name, words = html.escape("; ".join([heading or "figure", *lines])), html.escape(spec["description"])
    head, _, body = text.partition(">")
    body = re.sub(r"<g [^<>]*>", lambda tag: _ROLES.sub("", tag[0]), body)
    return f'{head} role="img" aria-label="{name}: {words}"><title>{name}</title><desc>{words}</desc>{body}'
