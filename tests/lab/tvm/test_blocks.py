"""Loops of TVMScript as blocks: what is independent becomes nests, and nothing else does."""

import ast

import pytest

from opsmith.suites import load_tasks
from opsmith_lab.tvm.blocks import write_blocks
from opsmith_lab.tvm.script import split_guard, write_guarded

HEAD = ast.parse(
    'x = T.match_buffer(x_handle, (M, N), "float32")\ny = T.match_buffer(y_handle, (M, N), "float32")'
).body
SUM = """
for m in range(M):
    total = x[m, 0]
    for n in range(N):
        total = total + x[m, n]
    for n in range(N):
        y[m, n] = total
"""
PRINTED = """
@T.prim_func(s_tir=True)
def kernel(x: T.Buffer((M_of * T.int64(8),), "float32")):
    for i in T.serial(M_of, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": 1}):
        for j, k in T.grid(T.int64(1), T.int64(8)):
            with T.sblock("step"):
                v = T.axis.spatial(M_of * T.int64(8), i * T.int64(8) + j + k)
                T.reads()
                T.writes(x[v])
                x[v] = T.float32(0.0)
"""


def test_a_sum_becomes_a_reduction_beside_what_it_began_with():
    text = write_blocks(HEAD, ast.parse(SUM).body, {})
    assert text.count("with T.sblock") == 4
    assert "with T.init():" in text
    assert "total_0_of[m_at] + total_1_of[m_at]" in text


@pytest.mark.parametrize("row", ["y[m, n] = total", "if total > 0: y[m, n] = x[m, n]", "y[m, 0] = x[m, n]"])
def test_what_has_an_order_is_left_alone(row):
    body = SUM.replace("total + x[m, n]\n", f"total + x[m, n]\n        {row}\n")
    assert write_blocks(HEAD, ast.parse(body).body, {}) is None


def test_each_plain_program_is_read_or_refused():
    for task in load_tasks(["kernels"], "tvm"):
        (function,) = ast.parse(task.impl).body
        count = task.impl.count("T.match_buffer(")
        text = write_blocks(function.body[:count], function.body[count:], {"eps": "float64"})
        assert text is None or ast.parse(text).body


def test_a_printed_schedule_becomes_loops_behind_a_guard():
    plain = ast.parse("for i in range(M):\n    x[i] = T.float32(0)").body
    text = write_guarded(PRINTED, {"M": 8}, plain)
    assert text.startswith("if M % 8 == 0:")
    assert "for i in range(M // 8):" in text
    assert "for k in T.vectorized(T.int64(8)):" in text
    assert "annotations" not in text
    assert [*map(ast.unparse, split_guard(ast.parse(text).body))] == [*map(ast.unparse, plain)]
