"""Figures: the same data gives the same picture, readable on light and dark, with words for who does not see it."""

import itertools
import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

from opsmith.report.figures import Box, bar_chart, interval_chart, line_chart
from opsmith.report.rendering import (
    COLUMN,
    COLUMNS,
    INK,
    PALETTE,
    Spec,
    annotate_figure,
    measure_text,
    render_png,
    render_svg,
    write_vega_lite,
)

POINTS = [
    {"x": 10**at, "y": at / 4, "low": at / 5, "high": at / 3, "label": "HME"[:at], "series": who, "mark": at == 2}
    for at in range(1, 4)
    for who in ("single", "a <b> & 'c'")
]
CURVE = line_chart(POINTS, title="A < B", x_title="input tokens", log_x=True)
BARS = bar_chart(POINTS, title="bars")


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("spec", [CURVE, BARS, line_chart([], title="none")])
def test_a_page_figure_takes_the_colour_of_the_text_around_it_and_is_named(spec):
    picture = render_svg(spec, "page")
    root = ET.fromstring(picture)
    assert "currentColor" in picture
    assert "url(" not in picture
    assert root.get("role") == "img"
    assert root.get("aria-label", "").startswith(spec["title"])
    assert [child.tag.rpartition("}")[2] for child in root[:2]] == ["title", "desc"]


def test_a_paper_figure_is_black_on_white_at_300_dots_an_inch_and_the_same_each_time():
    picture, printed = render_svg(CURVE, "paper"), render_png(CURVE)
    assert "currentColor" not in picture
    assert "#ffffff" in picture
    assert picture == render_svg(CURVE, "paper")
    assert int.from_bytes(printed[16:20], "big") == pytest.approx(CURVE["width"] * 300 / 96, abs=2)
    assert b"pHYs" + round(300 / 0.0254).to_bytes(4, "big") in printed


NAMES = ("single", "agent", "adaptive", "single, as many tokens")
SHARES = [
    {"x": arm, "series": "embedded", "y": value, "low": value - 0.1, "high": value}
    for arm, value in zip(NAMES, (0.744, 0.744, 0.885, None), strict=True)
    if value is not None
] + [{"x": NAMES[3], "series": "embedded", "y": None}]
PAPER = [{"x": "agent", "slot": "embedded", "y": 0.846, "series": "paper: a-model-20241022"}]
CROWD = [
    {"x": tokens + 20 * seed, "y": share, "label": f"{place}: HM", "series": f"seed {seed}", "low": share, "high": 1.0}
    for seed in range(3)
    for place, (tokens, share) in enumerate([(4850, 0.77), (5660, 0.88), (5670, 0.88), (5690, 0.88), (6400, 0.88)])
]
FULL = {
    "bars": bar_chart(SHARES, paper=PAPER, y_domain=(0, 1), width=COLUMN),
    "labels": line_chart(CROWD, width=COLUMNS),
    "lying": interval_chart(
        [{"x": f"a_rather_long_task_{i}", "series": "best", "y": i + 1.0, "low": i + 0.5, "high": i + 2} for i in range(9)],
        reference=1.0, width=COLUMN,
    ),
}  # fmt: skip
LINES = ["embedded model: a program sampler, not a language model", "n = 26 tasks, 14,016 judged samples; seeds 0, 1"]


def walk_texts(item: dict[str, Any], x: float = 0.0, y: float = 0.0) -> Iterator[tuple[str, Box]]:
    """The texts of a scene with the boxes that they fill; slanted and upright ones are left out."""
    x, y = x + item.get("x", 0), y + item.get("y", 0)
    if item.get("text") and not item.get("angle"):
        lines = item["text"] if isinstance(item["text"], list) else [item["text"]]
        size = item.get("fontSize", 11)
        width = max(measure_text(str(line), size * 0.93) for line in lines)
        left = x + item.get("dx", 0) - {"center": width / 2, "right": width}.get(item.get("align", "left"), 0.0)
        top = y + item.get("dy", 0) - {"top": 0.0, "middle": 0.35}.get(item.get("baseline", ""), 0.7) * size
        yield str(item["text"]), Box(left, top, left + width, top + 0.7 * size + 1.2 * size * (len(lines) - 1))
    for inner in item.get("items", ()):
        yield from walk_texts(inner, x, y)


@pytest.mark.parametrize("name", FULL)
def test_no_text_covers_another_and_all_lie_within_the_width(name: str):
    vl_convert = pytest.importorskip("vl_convert")
    spec = annotate_figure(FULL[name], LINES, "a finding that is longer than a line of the figure holds, as they are")
    scene = vl_convert.vegalite_to_scenegraph(write_vega_lite(spec, "paper"))["scenegraph"]
    boxes = list(walk_texts(scene))
    assert len(boxes) > 10
    assert [(a, b) for (a, one), (b, two) in itertools.combinations(boxes, 2) if one.overlaps(two)] == []
    width = ET.fromstring(render_svg(spec)).get("width")
    assert float(width or 0) <= spec["usermeta"]["width"] + 1


def test_a_figure_names_its_series_and_says_what_is_the_papers_and_what_is_missing():
    bars: Spec = annotate_figure(FULL["bars"], LINES, "a finding")
    words = texts(render_svg(bars))
    assert {"embedded", "paper: a-model-20241022", "a finding", "–", "0.744", "0.885"} <= set(words)
    assert LINES[1] in render_svg(bars)
    assert bars["layer"][0]["encoding"]["y"]["scale"]["domain"][0] == 0, "bars begin at 0"
    (paper,) = [layer for layer in bars["layer"] if "beside" in json.dumps(layer["encoding"])]
    fills = dict(zip(*(paper["encoding"]["fill"]["scale"][part] for part in ("domain", "range")), strict=True))
    assert fills == {"embedded": PALETTE[0], "paper: a-model-20241022": "transparent"}
    assert "no data: nobody ran" in texts(render_svg(bar_chart([], empty="nobody ran")))


def test_series_that_would_cover_each_other_stand_side_by_side():
    equal = [{"x": k, "y": 0.5, "low": 0.4, "high": 0.6, "series": who} for k in (1, 2, 4) for who in ("a", "b")]
    rows = line_chart(equal, log_x=True)["data"]["values"]
    assert len({row["x"] for row in rows}) == 6
    assert max(abs(math.log(row["x"] / k["x"])) for row, k in zip(rows, equal, strict=True)) < 0.05


def test_colours_have_contrast_on_white_and_on_a_dark_page():
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for colour in PALETTE:
        assert 1.05 / (luminance(colour) + 0.05) >= 3
        assert (luminance(colour) + 0.05) / (luminance("#15181c") + 0.05) >= 3
    assert INK == "currentColor"


def test_names_from_outside_are_shown_as_they_are_and_escaped():
    assert "a <b> & 'c'" in texts(render_svg(CURVE))
    assert "<b>" not in render_svg(CURVE)


def test_points_without_a_value_are_left_out():
    rows = [{"x": 1, "y": None}, {"x": 2, "y": math.nan}, {"x": 0, "y": 1.0}, {"x": 3, "y": 0.5}]
    assert len(line_chart(rows, log_x=True)["data"]["values"]) == 1
    assert len(bar_chart(rows)["data"]["values"]) == 2
    assert "no data" in texts(render_svg(line_chart(rows[:2])))


def test_marked_points_are_filled_and_others_hollow():
    picture = render_svg(CURVE)
    assert picture.count('fill-opacity="1"') == 2
    assert picture.count('fill-opacity="0"') == 4


def list_signs(spec: Spec) -> list[tuple[str, ...]]:
    """The zigzags at axes, by where they stand."""
    return [tuple(layer["encoding"]) for layer in spec["layer"] if str(layer["mark"].get("shape", "")).startswith("M")]


@pytest.mark.parametrize(("low", "is_broken"), [(1.0, False), (90.0, True)])
def test_an_axis_begins_at_0_or_is_broken_visibly(low: float, is_broken: bool) -> None:
    spec = line_chart([{"x": low, "y": low + 3}, {"x": 100.0, "y": 100.0}])
    place = spec["layer"][0]["encoding"]
    assert (place["x"]["scale"]["domain"][0] > 0, place["y"]["scale"]["domain"][0] > 0) == (is_broken, is_broken)
    assert len(list_signs(spec)) == 2 * is_broken
    assert list_signs(line_chart([{"x": 90, "y": 0.2}, {"x": 100, "y": 1}], log_x=True)) == []


def test_steps_hold_from_the_point_before_them() -> None:
    spec = line_chart(POINTS, is_stepped=True)
    shapes = {layer["mark"]["type"]: layer["mark"].get("interpolate") for layer in spec["layer"]}
    assert shapes == {"area": "step-before", "line": "step-before", "point": None, "text": None}
