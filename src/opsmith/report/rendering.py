"""Pictures of figures of numbers, and the look of all of them: SVG with text as text, PNG of 300 dots an inch, PDF.

Sizes are those of a paper with two columns, at 96 pixels an inch: a figure is one column or both columns wide, and its
smallest letters are 7.5 points high. Series differ by colour and by a second sign: a shape, a dash, a place. Text and
axes are in the ink of the theme: `page` takes the colour of the text around the figure, and draws on nothing, so that
it fits a light and a dark page; `paper` is black on white.

The same data gives the same bytes of SVG and PNG, and the same picture as PDF. No request is made: vl-convert brings
all it needs.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
import zlib
from collections.abc import Sequence
from typing import Any, Literal

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
    packed = [(name + body, len(body)) for name, body in (*before, (b"IDAT", pixels), (b"IEND", b""))]
    return _PNG + b"".join(
        size.to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") for chunk, size in packed
    )


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


Theme = Literal["page", "paper"]

COLUMN, PAGE, COLUMNS = 336, 480, 672  # widths: one column (3.5 in), between them, both columns (7 in)
HEIGHT = 230  # of the axes
PRINT_DPI, SCREEN_DPI = 300, 96
# Okabe and Ito's hues, with each lightness moved to where it has contrast 3 on white and on a dark page
PALETTE = ("#2b7fc9", "#d55e00", "#0d9a72", "#b8639b", "#a87b00", "#7a7f87", "#5f6ad6", "#c94f5d")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 3], [3, 1])
INK = "currentColor"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 12.5, 11, 10
LETTER = 0.62  # the mean width of a letter, as a share of its size
_LEGEND_SIGN = 34  # the sign of a legend's entry, with the room around it


def measure_text(text: str, size: float = TEXT_SIZE) -> float:
    """About how wide a line of text is, in pixels; rather too wide than too narrow."""
    return len(text) * size * LETTER


def wrap_text(text: str, width: float, size: float = TEXT_SIZE) -> list[str]:
    """The text in lines of at most so many pixels; a word is never broken.

    >>> wrap_text("single, as many tokens", 90)
    ['single, as', 'many tokens']
    """
    letters = max(1, int(width / (size * LETTER)))
    return textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False) or [""]


def count_legend_columns(names: Sequence[str], width: float) -> int:
    """How many entries of a legend stand side by side."""
    entry = max((measure_text(name) for name in names), default=0.0) + _LEGEND_SIGN
    return max(1, min(len(names), int(width / entry)))


def write_config(theme: Theme) -> dict[str, Any]:
    """Vega-Lite's configuration. Its ink is the theme's."""
    ink = choose_ink(theme)
    named = {"labelFont": FONT, "titleFont": FONT, "labelColor": ink, "titleColor": ink}
    axis = {"gridColor": ink, "gridOpacity": 0.13, "domainColor": ink, "tickColor": ink, "labelLimit": 240}
    legend = {"labelFontSize": TEXT_SIZE, "orient": "bottom", "labelLimit": 420, "symbolOpacity": 1, "symbolSize": 60}
    title = {"color": ink, "subtitleColor": ink, "fontSize": TITLE_SIZE, "subtitleFontSize": SMALL_SIZE, "font": FONT}
    return {
        "aria": False,  # the figure as a whole is named instead
        "font": FONT,
        "axis": {**named, **axis, "titleFontWeight": "normal", "labelFontSize": TEXT_SIZE, "titleFontSize": TEXT_SIZE},
        "legend": {**named, **legend},
        "title": {**title, "anchor": "start", "frame": "bounds", "offset": 12, "subtitlePadding": 4, "lineHeight": 16},
        "text": {"color": ink, "font": FONT},
        "rule": {"color": ink},
        "tick": {"color": ink},
        "view": {"stroke": None},
    }


def choose_ink(theme: Theme) -> str:
    return INK if theme == "page" else "#000000"
