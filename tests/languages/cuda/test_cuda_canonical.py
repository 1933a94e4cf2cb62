"""The canonical form of CUDA programs: equal when only names, comments and layout differ, and never otherwise."""

from __future__ import annotations

import re

import pytest

from languages.cuda.programs import PLAIN, needs_parser
from opsmith.targets.cuda.canonical import write_canonical

pytestmark = needs_parser
PROGRAM = """// workspace sums: fp32 [M, 2]
// launch reduce_rows grid=(M) block=(128) args=(x, sums, N)
// launch finish grid=(cdiv(M, 32)) block=(32) args=(sums, y, M)
#include <cuda_fp16.h>
#define TILE 8
#define MOST(l, r) ((l) > (r) ? (l) : (r) + TILE)
constexpr int WARPS = 4;
__constant__ float table[2] = {1, 2};
struct Part { float largest, sum; };
__device__ Part merge_parts(Part a, Part b) { return {fmaxf(a.largest, b.largest), a.sum + b.sum}; }
template <int SIZE, typename T> __device__ T shift_value(const T &value, int lane = 0) { return value + SIZE * lane; }
__device__ void load_tile(float (&tile)[WARPS][32], const float *from) { tile[0][threadIdx.x % 32] = from[0]; }
__global__ void reduce_rows(const float *__restrict__ in, float *out, long long count)
{
    __shared__ float tile[WARPS][32];
    extern __shared__ float dynamic[];
    float total = 0, *place = dynamic;
    load_tile(tile, in);
#pragma unroll
    for (long long i = threadIdx.x; i < count; i += blockDim.x) { total += shift_value<3, float>(in[i]) * table[0]; }
    for (int offset = 16; offset; offset /= 2) total += __shfl_down_sync(0xffffffffu, total, offset);
    out[blockIdx.x] = MOST(total, count);
}
extern "C" __global__ void finish(const float *in, float *out, long long count)
{
    const long long i = blockIdx.x * 32ll + threadIdx.x;
    if (i < count) { float total = in[i]; out[i] = total; } else { int total = 3; }
}
"""


def rename(source: str, **names: str) -> str:
    """All names at once."""
    return re.sub(rf"\b({'|'.join(names)})\b", lambda match: names[match[1]], source)


@pytest.mark.parametrize(
    "other",
    [
        rename(PROGRAM, reduce_rows="first", finish="second", sums="tmp"),
        rename(PROGRAM, total="acc", count="length", i="k", place="p", dynamic="raw", tile="block_tile"),
        rename(PROGRAM, WARPS="COUNT", table="weights", merge_parts="join_two", shift_value="move", load_tile="load"),
        rename(PROGRAM, lane="l_", value="v", a="first_part", b="second_part"),
        rename(PROGRAM, total="i", i="total"),
        rename(PROGRAM, l="left", r="right"),
        PROGRAM.replace("\n    ", "  // a comment\n\n\t").replace("if (i < count)", "if /* is it? */ (\n i < count )"),
        PROGRAM.replace("grid=(M)", "grid=( M, 1 )").replace("block=(32)", "block=(32, 1, 1)"),
        PROGRAM.replace("float total = 0,", "float to\\\ntal = 0,"),
    ],
)
def test_names_comments_and_layout_do_not_matter(other):
    assert other != PROGRAM
    assert write_canonical(other) == write_canonical(PROGRAM)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("total += shift_value<3", "total -= shift_value<3"),
        ("float total = in[i]; out[i] = total;", "float total = in[i]; out[i] = count;"),
        ("args=(sums, y, M)", "args=(sums, y, N)"),
        ("block=(128)", "block=(64)"),
        ("fp32 [M, 2]", "fp32 [M, 3]"),
        ("// launch finish grid=(cdiv(M, 32))", "// launch reduce_rows grid=(cdiv(M, 32))"),
        ("a.sum + b.sum", "a.sum + a.sum"),
        ("table[0]", "table[1]"),
        ("__global__ void finish(const float *in, float *out", "__global__ void finish(const float *out, float *in"),
        ("#define TILE 8", "#define TILE 9"),
        ("shift_value<3, float>", "shift_value<4, float>"),
        ("__constant__ float table", "const float table"),
        ("#pragma unroll", "#pragma unroll 2"),
    ],
)
def test_what_a_program_does_matters(before, after):
    assert before in PROGRAM
    assert write_canonical(PROGRAM.replace(before, after)) != write_canonical(PROGRAM)


@pytest.mark.parametrize(
    ("first", "second"),
    [  # a name that its scope does not explain: a field, a qualified name, a capture
        (
            "constexpr int x = 1;\nstruct S { float v; __device__ float get() { return v + x; } };",
            "constexpr int v = 1;\nstruct S { float v; __device__ float get() { return v + v; } };",
        ),
        (
            "constexpr int a = 1, b = 2;\n__device__ int f() { return n::a; }",
            "constexpr int b = 1, a = 2;\n__device__ int f() { return n::a; }",
        ),
        (
            "__device__ int f(int a, int b) { auto g = [&a](int c) { return a + c; }; return g(b); }",
            "__device__ int f(int b, int a) { auto g = [&a](int c) { return a + c; }; return g(b); }",
        ),
        (
            "constexpr int a = 1, b = 2;\n#define F(x) ((x) + a)\n__device__ int f() { return F(b); }",
            "constexpr int b = 1, a = 2;\n#define F(x) ((x) + a)\n__device__ int f() { return F(b); }",
        ),
    ],
)
def test_two_programs_never_share_a_form(first, second):
    assert write_canonical(first) != write_canonical(second)


@pytest.mark.parametrize("path", sorted(PLAIN.glob("*.cu")), ids=lambda path: path.stem)
def test_plain_programs_have_forms_of_their_own_names_or_none(path):
    source = path.read_text("utf-8")
    form = write_canonical(source)
    assert form == write_canonical(re.sub(r"(?m)^(\s+)", r"\1 ", source))
    assert "$0" in form


def test_texts_of_any_kind_have_a_form():
    for text in ("", "{", "__global__ void k(", "é ü", "#define A b c {\n__global__ void k() { A }", "\\\n" * 99):
        assert isinstance(write_canonical(text), str)
