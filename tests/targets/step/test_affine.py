"""The affine rule and its deterministic repair (reference section 6)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets.step.programs import spec

from opsmith.records import Stage
from opsmith.targets.step.language.canonical import canonical_text
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.copies import insert_copies

TASK = spec("fp32 [M]; Multihot(fp32, E) [M]", "fp32 [M]", ("fn_sq", "fn_neg", "fn_add", "fn_add3", "fn_sum"))
F, G = "step.Map(fn=fn_sq)", "step.Map(fn=fn_neg)"
SPLIT = "E2 = step.Partition(N=2).apply((E0, E1))\n"

DOUBLE = [
    (f"a = {F}.apply(E0)\nb = {G}.apply(E0)\nreturn a", "E0 (input): given consumed 2 times: line 1 Map, line 2 Map"),
    (f"X = E0\na = {F}.apply(X)\nb = {G}.apply(E0)\nreturn b", "line 2 Map, line 3 Map"),
    ("a = step.Zip().apply((E0, E0))\nreturn step.Map(fn=fn_add).apply(a)", "line 1 Zip, line 1 Zip"),
    (f"p = (E0, E0)\na = step.Map(fn=fn_add).apply(p)\nreturn {F}.apply(p[0])", "3 times"),
    (f"a = {F}.apply(input=E0)\nb = {F}.apply(E0)\nreturn a", "2 times"),
    (SPLIT + "E4 = step.Merge(fn=fn_sum).apply((E2, E1))\nreturn E4", "line 1 Partition (index), line 2 Merge (index)"),
    (SPLIT + f"a = [{F}.apply(s) for s in E2]\nb = {F}.apply(E2[0])\nreturn E0", "Partition, line 1"),
    (
        f"L = []\nfor i in range(3):\n    L.append({F}.apply(E0))\nreturn step.Map(fn=fn_add3).apply((L[0], L[1], L[2]))",
        "3 times",
    ),
    (
        f"a, b = step.Copy().apply(E0)\nc = {F}.apply(a)\nd = {G}.apply(a)\nreturn step.Map(fn=fn_add).apply((c, d))",
        "a (Copy, line 1)",
    ),
]


@pytest.mark.parametrize(("program", "words"), DOUBLE)
def test_a_second_consumption_is_found_however_it_is_hidden(program, words):
    report = check_program(TASK, program)
    affine = [error for error in report.errors if error.kind == "AFFINE"]
    assert len(affine) >= 1
    assert words in str(affine[0])
    assert "Cop" in affine[0].remedy


ONCE = [
    f"X = {F}.apply(E0)\nX = {F}.apply(X)\nreturn X",
    f"a, b = step.Copy().apply(E0)\nreturn {F}.apply(a)",
    f"op = {F}\nI, J = step.Copy().apply(E1)\nE2 = step.Partition(N=2).apply((E0, I))\na = [op.apply(s) for s in E2]\n"
    "b = [op.apply(s) for s in a]\nreturn step.Merge(fn=fn_sum).apply((b, J))",
    "return E0",
]


@pytest.mark.parametrize("program", ONCE)
def test_single_consumption_passes(program):
    assert check_program(TASK, program).stage == Stage.RUN


@pytest.mark.parametrize(("program", "words"), [row for row in DOUBLE if check_program(TASK, row[0]).unrolled])
def test_copies_repair_every_program_that_only_breaks_the_affine_rule(program, words):
    repaired = insert_copies(TASK, program)
    assert repaired is not None
    before, after = check_program(TASK, program), check_program(TASK, repaired)
    assert after.stage == Stage.RUN
    values = [_root(before, stream) for stream in before.unrolled.outputs]
    assert values == [_root(after, stream) for stream in after.graph.outputs]


def _root(report, stream):
    """An output as an expression over inputs and functions, Copies looked through."""
    graph = report.unrolled
    if stream < len(graph.inputs):
        return graph.inputs[stream]
    node = next(node for node in graph.nodes if stream in node.results)
    if node.op == "Copy":
        return _root(report, node.operands[0])
    function = node.fn.func_name if node.fn else ""
    return (node.op, function, node.ints, node.results.index(stream), *(_root(report, part) for part in node.operands))


def test_copies_are_put_beside_the_text_and_nothing_else_changes():
    program = f"# squares\na = {F}.apply(E0)  # one\nb = {G}.apply(E0)\nreturn step.Map(fn=fn_add).apply((a, b))\n"
    expected = (
        "E0_0, E0_1 = step.Copy().apply(E0)\n# squares\n"
        f"a = {F}.apply(E0_0)  # one\nb = {G}.apply(E0_1)\nreturn step.Map(fn=fn_add).apply((a, b))\n"
    )
    assert insert_copies(TASK, program) == expected


@pytest.mark.parametrize(
    "program", ["return E0", "return E9", "x = step.Zip().apply((E0, E0, E0))\nreturn x", "import os"]
)
def test_nothing_is_rewritten_where_the_affine_rule_is_not_the_only_problem(program):
    assert insert_copies(TASK, program) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a = step.Map(fn=f).apply(E0)\nreturn a", "# hi\nX  = step.Map( fn = f ).apply( E0 )\n\nreturn X"),
        ("return [s for s in E0]", "return [t for t in E0]"),
        ("'''doc'''\nx = E0\nfor i in E1:\n    x = i\nreturn x", "y = E0\nfor j in E1:\n    y = j\nreturn y"),
        ("a = [E0 for i in L]\nb = [a for i in L]\nreturn b", "a = [E0 for i in L]\nb = [a for k in L]\nreturn b"),
    ],
)
def test_isomorphic_programs_have_one_canonical_text(left, right):
    assert canonical_text(left) == canonical_text(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("return step.Map(fn=f).apply(E0)", "return step.Map(fn=g).apply(E0)"),
        ("E0 = step.Map(fn=f).apply(E0)\nreturn E0", "E1 = step.Map(fn=f).apply(E1)\nreturn E1"),
        ("return step.Accum(fn=f, b=1).apply(E0)", "return step.Accum(fn=f, b=2).apply(E0)"),
        ("a = 1\nb = 2\nreturn a", "a = 1\nb = 2\nreturn b"),
        ("a = E0\nreturn a", "a = E0\nreturn _0"),
        ("a = [E0 for E0 in [E1]]\nreturn E0", "a = [x for x in [E1]]\nreturn x"),
        ("for E0 in []:\n    a = 1\nreturn E0", "for x in []:\n    a = 1\nreturn x"),
        ("for i in []:\n    a = E1\nreturn a", "for i in []:\n    b = E1\nreturn a"),
        ("return [E0 for x in [E0]]", "return [E0 for len in [E0]]"),
        ("return E0", "return E0\n'a text'"),
        ("return E0", "5\nreturn E0"),
        ("return E0", "return E0  #" + "." * 2**16),
    ],
)
def test_different_programs_keep_different_canonical_texts(left, right):
    assert canonical_text(left) != canonical_text(right)


NAMES = st.sampled_from(["E0", "E1", "a", "b", "_0", "M"])
STATEMENTS = st.sampled_from(
    [
        "{} = {}\n",
        "{} = [{} for {} in [{}]]\n",
        "{} = [{} for {} in []]\n",
        "for {} in []:\n    {} = {}\n",
        "for {} in [{}]:\n    {} = {}\n",
        f"{{}} = {F}.apply({{}})\n",
        "'a text'\n",
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STATEMENTS, max_size=2), st.data())
def test_programs_with_one_canonical_text_have_one_graph(statements, data):
    """Verdicts are shared between such programs, so a right one must not lend its verdict to a wrong one."""
    text = "".join(statements) + "return {}\n"
    graphs = {}
    for _ in range(40):
        program = text.format(*data.draw(st.lists(NAMES, min_size=text.count("{}"), max_size=text.count("{}"))))
        graph = check_program(spec("fp32 [M]; fp32 [M]", "fp32 [M]"), program).graph
        shape = graph and ([(node.op, node.operands) for node in graph.nodes], graph.outputs)
        assert graphs.setdefault(canonical_text(program), shape) == shape


def test_what_does_not_parse_stands_for_itself():
    assert canonical_text("not a (program") == "not a (program"
