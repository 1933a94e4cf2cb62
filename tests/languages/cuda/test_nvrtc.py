"""NVRTC in a process of its own: right kernels become a cubin, and a hostile text is a finding or a clean kill.

Texts go straight to the compiler here, past all that `check_source` would refuse.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from languages.cuda.programs import PLAIN
from languages.gpu_programs import needs_cuda
from opsmith.running.compiler import CompileFailure, CompileRefusal
from opsmith.targets.cuda import nvrtc
from opsmith.targets.cuda.messages import explain_refusal
from opsmith.targets.cuda.nvrtc import LIMITS, CubinResult, CudaOrder, compile_kernels
from opsmith.targets.cuda.remarks import read_resources
from opsmith.targets.cuda.syntax import list_kernels
from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES

pytestmark = needs_cuda
KERNEL = "__global__ void k(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }\n"
QUICK = replace(LIMITS, cpu_seconds=2)


def compile_text(source: str, arch: str = "sm_90"):
    return compile_kernels(CudaOrder(source, ("k",), arch), QUICK)


@pytest.mark.parametrize("path", sorted(PLAIN.glob("*.cu")), ids=lambda path: path.stem)
def test_every_plain_program_compiles(path):
    source = path.read_text("utf-8")
    kernels = tuple(head.name for head in list_kernels(source))
    result = compile_kernels(CudaOrder(source, kernels, "sm_90"))
    assert isinstance(result, CubinResult), result
    assert result.cubin.startswith(b"\x7fELF")
    assert read_resources(result.log).keys() == set(result.symbols.values())
    assert result.symbols.keys() == set(kernels)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_compiles_for_each_architecture(arch):
    assert isinstance(compile_text(KERNEL, arch), CubinResult)


@pytest.mark.parametrize(
    "headers",
    [
        ("cuda_fp16.h", "cuda_bf16.h"),
        ("cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h"),
        ("stdint.h", "stddef.h", "float.h", "limits.h", "math.h", "cstdint", "cfloat", "climits", "cmath", "cstddef"),
        ("cuda_runtime.h", "math_constants.h"),
        ("mma.h", "cuda_pipeline.h", "cuda_fp8.h", "cooperative_groups/memcpy_async.h"),
    ],
)
def test_headers_are_there(headers):
    assert isinstance(compile_text("".join(f"#include <{name}>\n" for name in headers) + KERNEL), CubinResult)


def test_groups_reduce_and_types_of_fixed_size_are_known_without_a_header():
    source = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(const float *x, float *y)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int64_t n = threadIdx.x;
    float sum = cg::reduce(warp, n < INT_MAX ? x[n] : INFINITY * FLT_MAX, cg::plus<float>());
    y[0] = sum * (float)M_PI;
}
"""
    assert isinstance(compile_text(source), CubinResult)


DOUBLING = "#define A0 y[0] += x[0];\n" + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 33))
HOSTILE = {
    "a file of the system": ('#include "/etc/passwd"\n' + KERNEL, "cannot open"),
    "a file of the process": ("#include </proc/self/environ>\n" + KERNEL, "cannot open"),
    "a file by its parent": ('#include "../../../../../../etc/passwd"\n' + KERNEL, "cannot open"),
    "a device": ('#include "/dev/zero"\n' + KERNEL, "cannot open"),
    "its own source": ('#include "kernel.cu"\n' + KERNEL, "k"),
    "a file as bytes": ('__device__ const char t[] = {\n#embed "/etc/passwd"\n};\n' + KERNEL, ""),
    "assembly of a file": ('__global__ void k(float *y) { asm volatile(".incbin \\"/etc/passwd\\";"); }', ""),
    "templates without end": ("template <int N> struct F { typedef typename F<N + 1>::t t; };\n__global__ void k(float *y) { F<0>::t x; }", "recursion"),
    "templates that double": ("template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };\ntemplate <int M> struct F<0, M> { static const int v = M; };\n__global__ void k(float *y) { y[0] = F<26, 0>::v; }", ""),
    "a constant without end": ("__device__ constexpr int f() { int s = 0; for (;;) s++; return s; }\n__global__ void k(float *y) { constexpr int q = f(); y[0] = q; }", ""),
    "a constant of many calls": ("__device__ constexpr long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n__global__ void k(float *y) { constexpr long q = f(60); y[0] = q; }", ""),
    "macros that double": (DOUBLING + "__global__ void k(const float *x, float *y) { A32 }", "limit"),
    "a large constant array": ("__device__ float t[2000000000] = {1.0f};\n__global__ void k(float *y) { y[0] = t[1]; }", "limit"),
    "a large shared array": ("__global__ void k(float *y) { __shared__ float t[1 << 20]; t[threadIdx.x] = 1; __syncthreads(); y[0] = t[1 + threadIdx.x]; }", "shared"),
    "deep brackets": ("__global__ void k(float *y) { y[0] = " + "(" * 100_000 + "1" + ")" * 100_000 + "; }", ""),
    "a line of a megabyte": (f"__global__ void k(float *y) {{ y[0] = {'z' * (1 << 20)}; }}", "identifier"),
    "many errors": ("__global__ void k(float *y) {" + "y[0] = z;\n" * 5000 + "}", "undefined"),
    "no text": ("", "no kernel k"),
    "junk": ("\0\x01\xff \ud800 é" * 1000, ""),
    "an end of file": ("__global__ void k(float *y) { /* ", ""),
    "a kernel that is not there": ("#if 0\n" + KERNEL + "#endif\n", "no kernel k once the preprocessor has run"),
    "host code": (KERNEL + "#include <iostream>\nint main() { std::cout << 1; }", "cannot open"),
    "a launch": (KERNEL + "__global__ void l(float *y) { k<<<1, 1>>>(y, y); }", ""),
    "an unknown function": ('extern "C" __device__ int system(const char *);\n__global__ void k(float *y) { y[0] = system("id"); }', ""),
    "a warning for each line": (KERNEL + "__global__ void l(float *y) {" + "{ int a; }\n" * 20_000 + "y[0] = b; }", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_a_finding_or_a_clean_kill(name, monkeypatch):
    monkeypatch.setenv("OPSMITH_API_KEY", "TOP-SECRET")
    source, words = HOSTILE[name]
    result = compile_text(source)
    assert isinstance(result, CompileRefusal), result
    findings = explain_refusal(result, source)
    messages = "\n".join(map(str, findings))
    assert 1 <= len(findings) <= 5
    assert words in messages
    assert len(messages) < 10_000
    for secret in ("TOP-SECRET", "root:", "/usr/", "/tmp/", "site-packages"):
        assert secret not in messages
    assert isinstance(compile_text(KERNEL), CubinResult)


@pytest.mark.parametrize(
    "source",
    [
        "__device__ char t[3000000000];\n__global__ void k(float *y) { y[0] = t[1]; }",
        "__global__ void k(float *y) { for (;;) y[0] += 1; }",
        "__global__ void k(float *y) {" + "{" * 100_000 + "}" * 100_000 + "}",
    ],
)
def test_what_it_takes_it_takes_within_its_limits(source):
    assert isinstance(compile_text(source), CubinResult | CompileRefusal)


def test_a_compiler_that_refuses_right_programs_says_nothing_of_wrong_ones(monkeypatch, tmp_path):
    """Here: one whose headers are gone."""
    toolkit = nvrtc.find_toolkit()
    monkeypatch.setattr(nvrtc, "find_toolkit", lambda: replace(toolkit, headers=tmp_path))
    result = compile_text("#include <cuda_fp16.h>\n" + KERNEL)
    assert isinstance(result, CompileFailure)
    assert "NVRTC refuses a right program too" in result.reason


def test_a_late_compiler_is_ours():
    result = compile_kernels(CudaOrder(KERNEL, ("k",), "sm_90"), replace(LIMITS, seconds=0.01))
    assert isinstance(result, CompileFailure)


def test_the_process_that_compiles_sees_no_variables_of_the_user(monkeypatch):
    monkeypatch.setenv("NVRTC_TEST_SECRET", "TOP-SECRET")
    assert "NVRTC_TEST_SECRET" in os.environ
    assert isinstance(compile_text("#include </proc/self/environ>\n" + KERNEL), CompileRefusal)
