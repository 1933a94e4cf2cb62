"""The picture of a task: its parts are true to the store, nothing leaves its panel, and hostile texts stay texts."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from report.conftest import HOSTILE

from opsmith.report.story_picture import NARROW, WIDTH, describe_costs, draw_story, tell_story
from opsmith.suites import load_tasks

SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 7.23  # of a letter at 12 px, in the fonts that are asked for


def read_lines(picture):
    """(x, y, text, class) of every line."""
    nodes = ET.fromstring(picture).iter(f"{SVG}text")
    return [(float(node.get("x")), float(node.get("y")), node.text, node.get("class") or "") for node in nodes]


def read_text(picture):
    """All of it, without blanks: lines are broken where they would leave their panel."""
    return "".join("".join(text.split()) for _, _, text, _ in read_lines(picture))


def assert_all_is_inside(picture):
    rects = [
        tuple(float(node.get(key)) for key in ("x", "y", "width", "height"))
        for node in ET.fromstring(picture).iter(f"{SVG}rect")
        if node.get("class") == "panel"
    ]
    lines = [line for line in read_lines(picture) if line[3] != "title"]
    for x, y, text, _ in lines[:-3]:
        panels = [rect for rect in rects if rect[0] < x < rect[0] + rect[2] and rect[1] < y < rect[1] + rect[3]]
        assert len(panels) == 1, text
        assert x + WIDEST * len(text) <= panels[0][0] + panels[0][2], text
        assert y <= panels[0][1] + panels[0][3] - 8, text
    assert len({(x, y) for x, y, _, _ in lines}) == len(lines)


@pytest.mark.parametrize("width", [NARROW, WIDTH])
def test_an_operator_is_told_from_its_reference_to_the_program_kept(hostile, width):
    store, run = hostile
    story = replace(tell_story(store, run, "attn_0"), costs=(describe_costs({"cycles": 130}),))
    picture = draw_story(story, width)
    assert_all_is_inside(picture)
    text = read_text(picture)
    for words in (
        "weight = torch.softmax(input_data['E0'], dim=-1)",
        "with the functions fn_maxsum, fn_getthird",
        "3 programs were judged",
        "2 passed 1 refused at FORMAT: no program in the reply",
        load_tasks(["attn_0"])[0].impl or "",
        "by the cost model: 130 cycles",
        "seed 0",
    ):
        assert "".join(words.split()) in text


def test_texts_of_others_are_no_markup(hostile):
    store, run = hostile
    picture = draw_story(tell_story(store, run, HOSTILE))
    assert {node.tag.removeprefix(SVG) for node in ET.fromstring(picture).iter()} <= {
        "svg",
        "title",
        "style",
        "rect",
        "text",
    }
    assert "\u202e" not in picture
    assert "Noprogramisrightyet" in read_text(picture)
    assert "refusedatPARSE" in read_text(picture)


def test_the_nearest_miss_came_furthest(store, runs):
    story = tell_story(store, runs[0], "mul_1")
    assert story.nearest is not None
    assert story.nearest.stage == next(label for label, _ in story.ends if label != "passed")
    assert story.nearest.message
    assert_all_is_inside(draw_story(story))
