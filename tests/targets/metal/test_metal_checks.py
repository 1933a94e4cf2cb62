"""What is refused of a Metal program before any compiler sees it, and what a model is told of the language."""

from __future__ import annotations

import pytest
import yaml

from opsmith.models.tokens import estimate_tokens
from opsmith.suites import load_tasks
from opsmith.targets.metal import METAL
from opsmith.targets.metal.canonical import write_canonical
from opsmith.targets.metal.dialect import write_checked
from opsmith.targets.metal.messages import explain_messages
from opsmith.targets.metal.source import check_source, is_program
from opsmith.targets.metal.syntax import list_kernels
from opsmith.targets.protocols import PROPOSER

(TASK,) = load_tasks(["kernels/row_sum"], "metal", {})
HEAD = "// launch row_sum grid=(M) block=(32) args=(x, y, N)\n#include <metal_stdlib>\nusing namespace metal;\n"
RIGHT = f"""{HEAD}
constant uint LANES = 32;

kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &N [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_position_in_threadgroup]])
{{
    float sum = 0.0f;
    for (uint n = lane; n < N; n += LANES) {{
        sum += x[row * N + n];
    }}
    sum = simd_sum(sum);
    if (lane == 0) {{
        y[row] = sum;
    }}
}}
"""


def refuse(old: str, new: str) -> str:
    """The first finding of PARSE once a part of the right program is another."""
    assert old in RIGHT
    checked = METAL.check_program(TASK, RIGHT.replace(old, new, 1))
    assert checked.errors
    return str(checked.errors[0])


def test_a_right_program_is_refused_by_nothing():
    assert not METAL.check_program(TASK, RIGHT).errors


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[buffer(1)]]", "[[bufer(1)]]", "write [[buffer(n)]]"),
        ("[[buffer(1)]]", "[[buffer(x)]]", "buffer(n) with a number"),
        ("[[buffer(1)]]", "[[buffer(0)]]", "buffer(0) twice"),
        ("[[buffer(1)]]", "[[buffer(7)]]", "args[n] is given to [[buffer(n)]]"),
        ("device float *y", "float *y", "address space"),
        ("device float *y", "device half *y", "declare it as device float *y"),
        ("device float *y", "constant float *y", "constant memory"),
        ("device const float *x", "device float *x", "const: inputs may only be read"),
        ("constant uint &N", "constant uint *N", "a reference"),
        ("constant uint &N", "device const uint &N", "a number in constant memory"),
        ("constant uint &N", "constant float &N", "a whole number"),
        ("uint row [[threadgroup_position_in_grid]]", "uint row", "without an attribute of the grid"),
        ("uint row", "float row", "uint, uint2 or uint3"),
        ("uint row", "uint3 tile [[threadgroups_per_grid]], uint2 row", "as many components"),
        ("kernel void", "kernel float", "void"),
        ("block=(32)", "block=(2048)", "1 to 1024"),
        ("block=(32)", "block=(32) shared=64", "[[threadgroup(0)]]"),
        ("block=(32)", "block=(32) shared=65536", "0 to 32768"),
        ("float sum = 0.0f;", "double sum = 0.0;", "no double"),
        ("float sum = 0.0f;", "static float sum = 0.0f;", "`static` in a function"),
        ("float sum = 0.0f;", 'float sum = __builtin_nanf("");', "`__builtin_nanf`"),
        ("float sum = 0.0f;", "float sum = 0.0f; float2 v; v.lo = v.s1;", "components x y z w"),
        ("float sum = 0.0f;", "float sum = ((float2)(1.0f, 2.0f)).x;", "write float2(...)"),
        ("float sum = 0.0f;", "float sum = 0.0f; const float *p = x;", "device, constant, threadgroup or thread"),
        ("constant uint LANES", "uint LANES", "write constant before it"),
        ("#include <metal_stdlib>", "#include <math.h>", "<metal_stdlib>"),
        ("sum = simd_sum(sum);", "__syncthreads();", "words: kernel, device, threadgroup"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(old, new, words):
    assert words in refuse(old, new)


@pytest.mark.parametrize(
    "text",
    [
        "struct Part { float lo, hi; float size() const { return hi - lo; } static float one() { return 1.0f; } };",
        "namespace own { constant float half_of[2] = {0.5f, 0.25f}; inline float f(float a, float b) { return a * b; } }",
        "template <class T> inline T twice(thread const T &value) { return value + value; }",
        "inline float first(device const float *p, threadgroup float (&t)[4]) { return p[0] * t[0]; }",
        "#define SCALE(v) ((v) * 2.0f)",
        "#pragma METAL fp math_mode(safe)",
        "enum Kind : int { ONE, TWO };",
        "using Row = device const float *;",
    ],
)
def test_near_misses_are_let_pass(text):
    assert check_source(RIGHT.replace("constant uint LANES = 32;", f"{text}\nconstant uint LANES = 32;")) == ()


def test_buffers_without_a_number_take_those_that_are_free():
    source = "kernel void f(device float *a, constant uint &n [[buffer(0)]], device float *b) { }"
    (head,) = list_kernels(source)
    assert head.buffers == {0: 1, 1: 0, 2: 2}


def test_names_and_layout_do_not_make_another_program():
    renamed = RIGHT.replace("sum", "total").replace("row_total", "row_sum").replace("simd_total", "simd_sum")
    assert write_canonical(renamed.replace("lane", "place")) == write_canonical(RIGHT)
    assert write_canonical(RIGHT.replace("simd_sum", "simd_max")) != write_canonical(RIGHT)
    assert write_canonical(RIGHT.replace("block=(32)", "block=(64)")) != write_canonical(RIGHT)


def test_a_vector_is_made_by_its_brackets_and_a_prototype_is_none():
    assert "float4 v = float4(s, f(1.0f), 0.0f, 0.0f);" in write_checked("float4 v(s, f(1.0f), 0.0f, 0.0f);")
    assert write_checked("float4 f(float a, float b);") == "float4 f(float a, float b);"


def test_messages_speak_of_metal_and_name_no_path():
    text = "checked.metal:4:9: error: assigning '__local float *__private' to '__global float *' changes address space of pointer\n"
    (finding,) = explain_messages(text, "\n\n\np = q;\n")
    assert (finding.line, finding.text) == (4, "p = q;")
    assert finding.given == "assigning 'threadgroup float *' to 'device float *' changes address space of pointer"
    assert finding.remedy == "declare the pointer with the address space of what it points to"


def test_a_compiler_that_breaks_down_says_nothing_of_this_machine():
    (finding,) = explain_messages("Stack dump:\n0. Program arguments: /usr/lib/x/clang checked.metal\n", "")
    assert finding.given == "a program on which clang broke down"


def test_the_prompts_are_short_and_their_example_is_a_program():
    assert estimate_tokens(METAL.base_prompt(PROPOSER)) <= 3000
    assert estimate_tokens(METAL.improvement_prompt(True)) <= 3000
    example = yaml.safe_load(METAL.improvement_prompt(True))["example"]
    assert is_program(example["before"])
    assert is_program(example["after"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RIGHT, True),
        ("[[kernel]] void f(device float *y) { *y = 1; }", True),
        (f"Here it is:\n{RIGHT}", False),
        (RIGHT.rstrip().removesuffix("}"), False),
        ("inline float f(float y) { return y; }", False),
    ],
)
def test_a_program_is_told_from_prose(text, expected):
    assert is_program(text) is expected


def test_no_text_makes_the_checks_fail():
    for text in (
        "[[",
        "kernel",
        "kernel void f(",
        "[[buffer(",
        "threadgroup",
        "kernel void f([[]]) {",
        "*",
        "static",
        "}",
    ):
        assert METAL.check_program(TASK, text).errors
