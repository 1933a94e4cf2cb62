"""Drawings of programs: every stream's type is there, and nothing lies over anything else."""

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from opsmith.report.drawing import MAX_NODES, draw_dataflow, lay_out, width_of
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.programs import Dataflow, Edge, Node
from opsmith.targets.protocols import Drawn

STEP = get_target("step")
TASKS = {task.id: task for task in load_tasks(["step26", "step_extra"])}
SVG = "{http://www.w3.org/2000/svg}"


def flow_of(task: str, source: str | None = None) -> Dataflow:
    assert isinstance(STEP, Drawn)
    found = STEP.build_dataflow(TASKS[task], source or TASKS[task].impl or "")
    assert found is not None
    return found


def boxes(picture: str) -> list[tuple[float, float, float, float]]:
    """left, top, right, bottom of every box."""
    found = [
        [float(node.get(name, "")) for name in ("x", "y", "width", "height")]
        for node in ET.fromstring(picture).iter(f"{SVG}rect")
    ]
    return [(x, y, x + width, y + height) for x, y, width, height in found]


def lines(picture: str) -> list[tuple[float, float, float, float]]:
    """The same of every line of text, by its estimated width."""
    found = []
    for span in ET.fromstring(picture).iter(f"{SVG}tspan"):
        x, y, half = float(span.get("x", "")), float(span.get("y", "")), width_of(span.text or "") / 2
        found.append((x - half, y - 9, x + half, y + 3))
    return found


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("task", TASKS)
def test_every_oracle_is_drawn_without_overlaps_and_with_all_types(task):
    flow = flow_of(task)
    picture = draw_dataflow(flow, f"Dataflow of {task}") or ""
    assert not [pair for pair in combinations(boxes(picture), 2) if overlap(*pair)]
    assert not [pair for pair in combinations(lines(picture), 2) if overlap(*pair)]
    texts = ["".join(node.itertext()).replace(" ", "") for node in ET.fromstring(picture).iter(f"{SVG}text")]
    for edge in flow.edges:
        assert edge.type_text.replace(" ", "") in texts
    assert len(boxes(picture)) == len(flow.nodes)
    assert f"<title>Dataflow of {task}</title>" in picture


def test_a_stream_that_is_used_twice_or_never_is_seen():
    source = "E2 = step.Zip().apply((E0, E1))\nE3 = step.Streamify().apply(E1)\nreturn step.Streamify().apply(step.Map(fn=fn_getthird).apply(step.Accum(fn=fn_maxsum, b=1).apply(E2)))"
    flow = flow_of("attn_0", source)
    assert sum(edge.source == "i1" for edge in flow.edges) == 2
    assert [node.label for node in flow.nodes if node.kind == "unused"] == ["unused"]


@pytest.mark.parametrize("source", ["return (", "return step.Map(fn=fn_maxsum).apply(E0)", "this is no program", ""])
def test_what_has_no_graph_has_none(source):
    assert STEP.build_dataflow(TASKS["attn_0"], source) is None


def test_functions_and_numbers_stand_in_the_boxes():
    details = {(node.label, node.detail) for node in flow_of("gemm_0").nodes}
    assert ("Bufferize", "a=2") in details
    assert any(label == "Accum" and detail.startswith("fn_") and detail.endswith("b=1") for label, detail in details)


def test_names_from_outside_are_escaped():
    nodes = (Node("a", "<script>alert(1)</script>"), Node("b", 'x" onload="y'))
    picture = draw_dataflow(Dataflow(nodes, (Edge("a", "b", "<b>&"),)), "</title><script>") or ""
    assert "<script" not in picture
    assert ET.fromstring(picture).find(f"{SVG}title").text == "</title><script>"


def test_an_edge_leads_to_a_later_node():
    with pytest.raises(ValueError, match="leads to no later node"):
        Dataflow((Node("a", "a"), Node("b", "b")), (Edge("b", "a", "t"),))


def test_a_graph_too_large_for_the_eye_is_not_drawn():
    nodes = tuple(Node(str(at), "Map") for at in range(MAX_NODES + 1))
    assert draw_dataflow(Dataflow(nodes, ()), "large") is None
    assert draw_dataflow(Dataflow((), ()), "empty") is None


def test_a_long_edge_passes_beside_the_boxes_of_the_ranks_that_it_crosses():
    names = dict.fromkeys("abcd", (80.0, 20.0))
    layout = lay_out(names, [("a", "b", (50, 10)), ("b", "c", (50, 10)), ("c", "d", (50, 10)), ("a", "d", (50, 10))])
    passed = layout.edges[3]
    assert len(passed) == 5
    for box in ("b", "c"):
        beside = [part for part in passed if part.y == layout.boxes[box].y]
        assert abs(beside[0].x - layout.boxes[box].x) > layout.boxes[box].width / 2
