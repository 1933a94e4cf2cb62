"""What is refused of a program in WGSL before naga sees it, with the line and the words; and what is one text in two."""

from __future__ import annotations

import pytest

from opsmith.models.tokens import estimate_tokens
from opsmith.records import Stage, Task
from opsmith.suites import load_tasks
from opsmith.targets.native.prompt_texts import read_prompt_file
from opsmith.targets.wgsl.lexing import blank_comments, split_source
from opsmith.targets.wgsl.own_arrays import find_own_array, list_own_arrays
from opsmith.targets.wgsl.recognition import is_program
from opsmith.targets.wgsl.syntax import read_module
from opsmith.targets.wgsl.target import WGSL
from opsmith.targets.wgsl.uniformity import check_uniformity

PROGRAM = """// launch row_sum grid=(M) block=(64) args=(x, y, M, N)
struct Sizes { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;
const LANES = 64u;
var<workgroup> partial: array<f32, LANES>;
@compute @workgroup_size(LANES)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    partial[lane] = x[group.x * size.N + lane];
    workgroupBarrier();
    if (lane == 0u) {
        y[group.x] = partial[0];
    }
}
"""
BARRIER = "    workgroupBarrier();\n"


@pytest.fixture(scope="module")
def task() -> Task:
    (task,) = load_tasks(["kernels/row_sum"], "wgsl")
    return task


def test_a_program_that_keeps_the_conventions_is_not_refused(task: Task) -> None:
    checked = WGSL.check_program(task, PROGRAM)
    assert (checked.stage, checked.errors) == (Stage.RUN, ())
    assert check_uniformity(PROGRAM) == ()


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("x: array<f32>", "x: array<i32>", 3, "expected array<f32> for the input x (fp32) of line 1"),
        ("storage, read> x", "storage, read_write> x", 3, "expected var<storage, read> for the input x"),
        ("var<storage, read_write> y", "var<uniform> y", 4, "expected var<storage, ...> for the output y"),
        ("@binding(1)", "@binding(3)", 4, "expected 0 to 2: line 1 has 2 arrays and numbers behind them"),
        ("@binding(1)", "@binding(0)", 4, "given @binding(0), which x of line 3 has"),
        ("@group(0) @binding(2)", "", 5, "given no @group(0) @binding(n) in digits"),
        ("M: u32, N: u32", "M: u32", 2, "given 1 fields (M); expected 2: the numbers M, N of line 1"),
        ("N: u32 }", "N: f32 }", 2, "expected i32 or u32 for the number N of line 1"),
        ("block=(64)", "block=(32)", 9, "given @workgroup_size(LANES); expected block=(32, 1, 1) of line 1"),
        ("block=(64)", "block=(min(N, 64))", 1, "expected numbers: line 9 states @workgroup_size(LANES)"),
        ("block=(64)", "block=(64) shared=64", 1, "expected no shared"),
        ("const LANES", "fn workgroupBarrier() { } const LANES", 6, "a declaration of `workgroupBarrier`, which hides"),
        ("const LANES", "alias u32 = i32; const LANES", 6, "a declaration of `u32`, which hides WGSL's own"),
        (BARRIER, "    let u32 = 1;\n", 11, "a local name that hides WGSL's own `u32`"),
        (BARRIER, "    *(&(partial[0])) = 1.0;\n", 11, "given a pointer to it"),
        (BARRIER, "    let p = &((partial[0]));\n", 11, "given a pointer to it"),
        ("fn row_sum", "fn row_total", 1, "row_sum: no such kernel"),
        ("LANES = 64u", "LANES = 8192u", None, "bytes of var<workgroup> (partial); expected at most 16384"),
        ("const LANES = 64u", "override LANES: u32", 6, "expected a value"),
        ("lane == 0u", "subgroupAdd(lane) == 0u", 12, "expected operations on workgroups"),
        ("lane == 0u", "opsmith_x == 0u", 12, "a name that begins with opsmith_"),
        ("    if (lane", "    let x = 1u;\n    if (lane", 12, "a local name that hides the variable x"),
        ("    if (lane", "    let p = &partial;\n    if (lane", 12, "given a pointer to it; expected its entries"),
        ("y[group.x] = partial[0];", "var t = partial; y[group.x] = t[0];", 13, "given the whole array as a value"),
        ("@builtin(workgroup_id)", "@builtin(subgroup_id)", 9, "expected @builtin of workgroup_id"),
        ("fn row_sum", "/* fn row_sum", 9, "try: close the comment"),
        ("}\n}\n", "}\n", 9, "given `{` that nothing closes"),
        ("lane == 0u", "lane == 0u \x00", 12, "the character U+0000"),
        ("size.N + lane", "size.N + lane; return row_sum(group, lane)", 9, "a function that calls itself"),
    ],
)
def test_what_kernel_and_plan_disagree_on_is_refused_with_both_lines(
    task: Task, before: str, after: str, line: int | None, words: str
) -> None:
    source = PROGRAM.replace(before, after, 1)
    if "8192" in after:
        source = source.replace("@workgroup_size(LANES)", "@workgroup_size(64)")
    checked = WGSL.check_program(task, source)
    assert checked.stage == Stage("PARSE")
    texts = [str(error) for error in checked.errors]
    assert any(words in text for text in texts), texts
    assert line is None or line in [error.line for error in checked.errors], texts


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("if (lane < 7u) { workgroupBarrier(); }", "`if` of line 10 depends on lane"),
        ("for (var i = lane; i < size.N; i++) { workgroupBarrier(); }", "`for` of line 10 depends on i"),
        ("if (lane > size.N) { return; } workgroupBarrier();", "`return` of line 10 leaves there"),
        ("loop { if (lane > 3u) { break; } workgroupBarrier(); }", "`break` of line 10 leaves there"),
        ("let k = group.x + lane; if (k > 3u) { storageBarrier(); }", "depends on k"),
        ("if (partial[0] > 1.0) { workgroupBarrier(); }", "partial, which is written"),
        ("if (varies(lane)) { workgroupBarrier(); }", "depends on varies"),
        ("if (lane < 7u) { meet(); }", "`if` of line 10 depends on lane"),
        ("var k = 0u; if (lane > 3u) { k = 1u; } while (k == 1u) { workgroupBarrier(); }", "`while` of line 10"),
        ("if (group.x > 3u) { } else if (lane > 3u) { } else { workgroupBarrier(); }", "`if` of line 10"),
    ],
)
def test_a_barrier_that_not_all_invocations_reach_is_found(statement: str, words: str) -> None:
    functions = "fn varies(i: u32) -> bool { return i > 3u; }\nfn meet() { workgroupBarrier(); }\n"
    (finding, *_) = check_uniformity(
        PROGRAM.replace("    partial[lane]", f"{statement}    partial[lane]", 1) + functions
    )
    assert words in str(finding), finding
    assert (finding.kind, finding.line) in (("COMPILE", 10), ("COMPILE", PROGRAM.count("\n") + 2))


@pytest.mark.parametrize(
    "statement",
    [
        "if (group.x >= size.M) { return; }",
        "for (var k = 0u; k < size.N; k++) { workgroupBarrier(); }",
        "for (var k = lane; k < 9u; k++) { } for (var k = 0u; k < 9u; k++) { workgroupBarrier(); }",
        "for (var w = LANES / 2u; w > 0u; w /= 2u) { workgroupBarrier(); if (lane < w) { partial[lane] += 1.0; } }",
        "for (var k = 0u; k < 9u; k++) { for (var i = lane; i < 9u; i++) { if (i > 3u) { break; } } workgroupBarrier(); }",
        "let row = group.x; if (row > 3u) { let k = lane; } let k = 2u; if (k > 1u) { workgroupBarrier(); }",
        "if (x[group.x] > 0.0) { workgroupBarrier(); }",
    ],
)
def test_barriers_that_sizes_and_workgroups_decide_are_fine(statement: str) -> None:
    assert check_uniformity(PROGRAM.replace("    partial[lane]", f"{statement}    partial[lane]", 1)) == ()


def test_names_and_layout_do_not_change_the_canonical_form() -> None:
    renamed = PROGRAM.replace("partial", "sums").replace("lane", "me").replace("row_sum", "total").replace("    ", "\t")
    commented = renamed.replace("workgroupBarrier();", "workgroupBarrier(); /* all /* have */ written */ // now")
    assert WGSL.canonical_form(commented) == WGSL.canonical_form(PROGRAM)
    for other in (
        PROGRAM.replace("64u", "32u"),
        PROGRAM.replace("lane == 0u", "lane == 1u"),
        PROGRAM.replace("(M)", "(N)"),
    ):
        assert WGSL.canonical_form(other) != WGSL.canonical_form(PROGRAM)


def test_comments_become_blanks_where_they_stood() -> None:
    text = "a /* b\n/* c */ d */ e // f\ng"
    blanked = blank_comments(text)
    assert [len(line) for line in blanked.split("\n")] == [len(line) for line in text.split("\n")]
    assert blanked.split() == ["a", "e", "g"]


def test_lengths_of_constants_are_computed_and_others_are_not() -> None:
    module = read_module("const A = 4u; const B = A * (2u + 0x2u) - 1u; fn f() { }")
    assert [module.compute_number(text) for text in ("A", "B", "B/2", "C", "max(A,B)", "A*")] == [
        4,
        15,
        7,
        None,
        None,
        None,
    ]


def test_tokens_know_their_lines_through_comments_and_templates() -> None:
    tokens = split_source("/* 1\n2 */ var<workgroup> t: array<vec2<f32>, 1u << 2u>;\nx >>= 1.5e-3f;")
    assert [(token.text, token.line) for token in tokens[:2]] == [("var", 2), ("<", 2)]
    assert [token.text for token in tokens[-5:]] == ["x", ">", ">=", "1.5e-3f", ";"]
    assert tokens[-1].line == 3


def test_prompts_are_short_and_the_example_is_a_program(task: Task) -> None:
    assert estimate_tokens(WGSL.base_prompt("proposer") or "") <= 3000
    assert estimate_tokens(WGSL.improvement_prompt(True)) <= 4000
    assert WGSL.base_prompt("guardian") is None
    assert (WGSL.base_prompt("proposer") or "").startswith(WGSL.prompt_without_example())
    for name in ("log_sum_exp.wgsl", "log_sum_exp_plain.wgsl"):
        assert is_program(read_prompt_file(WGSL.prompt_texts, name))
        assert WGSL.check_source(read_prompt_file(WGSL.prompt_texts, name)) == ()


@pytest.mark.parametrize("text", ["", "Here is it:\n" + PROGRAM, "fn f() {", "x: 1", PROGRAM + "done"])
def test_prose_and_parts_are_no_programs(text: str) -> None:
    assert not is_program(text)


def test_a_problem_of_types_that_wgsl_lacks_is_no_task() -> None:
    from opsmith.errors import TaskError

    with pytest.raises(TaskError, match="given bf16 for the target wgsl"):
        load_tasks(["kernels/rms_norm"], "wgsl")


def test_names_mean_the_array_of_their_own_scope() -> None:
    body = """fn f(q: ptr<function, array<f32, 3>>) {
    var own: array<vec4f, 2>;
    if (true) { var own = mat2x3<f32>(); let p = &own; own = 1; }
    for (var own = 1u; own < 2u; own++) { own = 1; }
    var one = array<f32, 4>(1, 2, 3, 4)[2];
    own = 1;
}
"""
    module = read_module(body)
    function = module.functions["f"]
    names = list_own_arrays(module, function)
    places = [place for place, token in enumerate(function.tokens) if token.text == "1"]
    found = [find_own_array(names, "own", place) for place in places]
    lengths = [array.lengths if array is not None else () for array in found]
    assert lengths == [("2", "3"), (), ("2", "4"), ("2", "4")]
    assert find_own_array(names, "one", len(function.tokens) - 1) is None  # a number that an index took
    pointer = find_own_array(names, "q", 1)
    assert pointer is not None
    assert pointer.is_pointer
    assert pointer.lengths == ("3",)
