"""Figures: the same data gives the same picture, readable on light and dark, with words for who does not see it."""

import math
import xml.etree.ElementTree as ET

import pytest

from opsmith.report.figures import bar_chart, line_chart, render_png, render_svg

POINTS = [
    {"tokens": 10**at, "share": at / 4, "low": at / 5, "high": at / 3, "level": "HME"[:at], "who": who, "best": at == 2}
    for at in range(1, 4)
    for who in ("single", "a <b> & 'c'")
]
CURVE = line_chart(
    POINTS, x="tokens", y="share", series="who", low="low", high="high", label="level", mark="best", title="A < B",
    x_title="input tokens", log_x=True,
)  # fmt: skip
BARS = bar_chart(POINTS, x="tokens", y="share", series="who", low="low", high="high", title="bars")


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("spec", [CURVE, BARS, line_chart([], x="a", y="b", title="none")])
def test_a_page_figure_takes_the_colour_of_the_text_around_it_and_is_named(spec):
    picture = render_svg(spec, "page")
    root = ET.fromstring(picture)
    assert "currentColor" in picture
    assert "url(" not in picture
    assert root.get("role") == "img"
    assert root.get("aria-label", "").startswith(spec["title"])
    assert [child.tag.rpartition("}")[2] for child in root[:2]] == ["title", "desc"]


def test_a_paper_figure_is_black_on_white():
    picture = render_svg(CURVE, "paper")
    assert "currentColor" not in picture
    assert "#ffffff" in picture
    assert render_png(CURVE).startswith(b"\x89PNG")


def test_the_same_data_gives_the_same_bytes():
    assert render_svg(CURVE) == render_svg(CURVE)
    assert render_png(BARS) == render_png(BARS)


def test_names_from_outside_are_shown_as_they_are_and_escaped():
    assert "a <b> & 'c'" in texts(render_svg(CURVE))
    assert "<b>" not in render_svg(CURVE)


def test_columns_may_have_names_that_vega_reads_as_paths():
    spec = line_chart([{"a.b[0]": 1, "c'd": 5.0}, {"a.b[0]": 2, "c'd": 7.0}], x="a.b[0]", y="c'd")
    assert "2 values, from 5 to 7" in render_svg(spec)


def test_points_without_a_value_are_left_out():
    rows = [{"x": 1, "y": None}, {"x": 2, "y": math.nan}, {"x": 0, "y": 1.0}, {"x": 3, "y": 0.5}]
    assert len(line_chart(rows, x="x", y="y", log_x=True)["data"]["values"]) == 1
    assert len(bar_chart(rows, x="x", y="y")["data"]["values"]) == 2
    assert "no data" in texts(render_svg(line_chart(rows[:2], x="x", y="y")))


def test_marked_points_are_filled_and_others_hollow():
    picture = render_svg(CURVE)
    legend = 2  # symbols, filled
    assert picture.count('fill-opacity="1"') - legend == 2
    assert picture.count('fill-opacity="0"') == 4
