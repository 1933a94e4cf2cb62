"""The look of every figure of numbers: sizes, fonts, colours, shapes, and how wide a text is.

Sizes are those of a paper with two columns, at 96 pixels an inch: a figure is one column or both columns wide, and its
smallest letters are 7.5 points high. Series differ by colour and by a second sign: a shape, a dash, a place. Text and
axes are in the ink of the theme: `page` takes the colour of the text around the figure, and draws on nothing, so that
it fits a light and a dark page; `paper` is black on white.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Literal

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
