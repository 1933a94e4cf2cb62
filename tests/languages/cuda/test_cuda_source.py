"""What a CUDA source may hold is said before a compiler sees it: findings of PARSE with line, reason and remedy."""

import pytest

from languages.cuda.programs import RIGHT, needs_parser, write_kernel
from opsmith.suites import task_files
from opsmith.targets.cuda.source import ATTRIBUTES, HEADERS, check_source
from opsmith.targets.cuda.unsupported import list_unsupported, needs_absent_header

pytestmark = needs_parser
HOST = "leave out all host code"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (write_kernel('asm("trap;");'), "line 3: program: given `asm`; expected CUDA C++ without inline assembly"),
        (write_kernel("as\\\nm(\"trap;\");"), "given `asm`"),
        (write_kernel("", "int main() { return 0; }"), HOST),
        (write_kernel("", "void run() { cudaMalloc(0, 1); }"), HOST),
        (write_kernel("", "void run() { row_sum<<<1, 1>>>(0, 0, 0, 0); }"), "kernels are launched by the plan"),
        (write_kernel("float *p = (float *)malloc(8);"), "use a workspace of the plan"),
        (write_kernel("float *p = new float[8];"), "use a workspace of the plan"),
        (write_kernel('printf("%f", x[0]);'), "a kernel that only computes"),
        (write_kernel("y[0] = clock64();"), "a kernel whose result depends on its inputs alone"),
        (write_kernel("y[0] = tex1D<float>(t, 0);", "texture<float> t;"), "read the array itself"),
        (write_kernel("", "__device__ int counter;"), "line 2: variable: given `__device__ int counter;`"),
        (write_kernel("", "__managed__ int counter;"), "`__managed__`"),
        (write_kernel("", "int counter = 3;"), "no variables that keep values"),
        (write_kernel("static int calls = 0; calls++;"), "given `static int calls = 0;`"),
        (write_kernel("", "struct S { int a; }; static S s;"), "no variables that keep values"),
        (write_kernel("", "namespace n { __device__ float kept[4]; }"), "no variables that keep values"),
        (write_kernel("", '#include "/etc/passwd"'), 'given "/etc/passwd"'),
        (write_kernel("", "#include </proc/self/environ>"), "#include"),
        (write_kernel("", "#include <iostream>"), "expected one of <cuda_fp16.h>"),
        (write_kernel("", '#include "cuda_fp16.h"'), "try: write <cuda_fp16.h>"),
        (write_kernel("", '#define P "/etc/passwd"\n#include P'), "given P"),
        (write_kernel("", '#if __has_include("/etc/passwd")\n#endif'), "expected names that the program defines above"),
        (write_kernel("", "#ifdef __CUDA_ARCH__\n#endif"), "`__CUDA_ARCH__`"),
        (write_kernel("", "#ifdef __GNUC__\n#endif"), "`__GNUC__`"),
        (write_kernel("", "#ifndef linux\n#endif"), "`linux`"),
        (write_kernel("", "#define __launch_bounds__(x) x"), "a name of the program's own"),
        (write_kernel("", "#define P(a, b) a##b"), "names that can be read in the program"),
        (write_kernel("y[0] = sizeof(__FILE__);"), "the same for every compiler"),
        (write_kernel("y[0] = __INCLUDE_LEVEL__;"), "the same for every compiler"),
        (write_kernel("y[0] = __builtin_FILE()[0];"), "the same for every compiler"),
        (write_kernel("y[0] = unix;", "#ifndef unix\n#define unix 0\n#endif"), "take another name"),
        (write_kernel("y[0] = sizeof(long double);"), "a type of one size everywhere"),
        (write_kernel("y[0] = sizeof(S(blockIdx));", "#define T(x) #x\n#define S(x) T(x)"), "macro: given `#`"),
        (write_kernel("", "#pragma GCC optimize(0)"), "expected #pragma unroll"),
        (write_kernel("", '#line 1 "/etc/passwd"'), "directive: given #line"),
        (write_kernel("", "__attribute__((constructor)) void begin() {}"), "attribute: given constructor"),
        (write_kernel("", "[[gnu::constructor]] void begin() {}"), "attribute: given gnu"),
        (write_kernel("", "__attribute__((section(\".init_array\"))) void *p;"), "attribute: given section"),
        (write_kernel("const uint3 &here = threadIdx;"), "given the address of `threadIdx`"),
        (write_kernel("y[0] = reinterpret_cast<size_t>(&blockDim.x) % 64;"), "given the address of `blockDim`"),
        (write_kernel("", "int opsmith_phase = 0;"), "given `opsmith_phase`"),
        (write_kernel("", "void __tsan_read4(void *p) {}"), "given `__tsan_read4`"),
        (write_kernel("", "template <class T> __global__ void g(T *y) {}"), "calls a __device__ template"),
        (write_kernel("", "__global__ void row_sum(float *y) {}"), "a second kernel row_sum"),
        (write_kernel("y[0] = 0; // \0"), "the character U+0000"),
        (write_kernel("y[0] = 0; // \ud800"), "the character U+D800"),
        (write_kernel("// " + "x" * (1 << 20)), "bytes; expected at most 65536"),
        (write_kernel("// " + "x" * 3000), "3005 characters; expected at most 2000"),
        (write_kernel("y[0] = " + "(" * 20_000 + "1" + ")" * 20_000 + ";"), "expected at most"),
        (write_kernel('y[0] = R"(x)";'), "a token of CUDA C++"),
        (write_kernel("/* "), "a token of CUDA C++"),
    ],
)  # fmt: skip
def test_it_is_refused_with_words(source, words):
    findings = check_source(source)
    assert findings
    assert any(words in str(finding) for finding in findings), list(map(str, findings))
    assert all(finding.kind == "PARSE" and len(str(finding)) < 2000 for finding in findings)


@pytest.mark.parametrize(
    "before",
    [
        *(f"#include <{name}>" for name in HEADERS),
        "__constant__ float table[3] = {1, 2, 3};",
        "static constexpr int WIDTH = 3; const float HALF = 0.5f; __device__ const float weights[] = {1};",
        "extern __shared__ float dynamic[];",
        "__device__ float helper(float); __device__ float *other(int);",
        "using T = float; typedef float U; enum { FEW = 3 }; struct __align__(8) Pair { float a, b; };",
        "#define WIDTH 4\n#if WIDTH > 3\n#endif\n#ifdef WIDTH\n#endif",
        "#ifndef M_PI\n#define M_PI 3.14159\n#endif",
        "template <int N> __device__ __forceinline__ float power(float v) { return N ? v * power<N - 1>(v) : 1; }",
        "namespace cg_like { __device__ inline int f() { static const int k = 3; return k; } }",
    ],
)
def test_what_kernels_need_is_let_pass(before):
    body = "static __shared__ float tile[32];\n#pragma unroll 4\n  for (int i = 0; i < 4; i++) tile[i] = 0;"
    assert not check_source(write_kernel(body, before))


@pytest.mark.parametrize("path", [path.parent / "plain" / f"{path.stem}.cu" for path in task_files("kernels")], ids=str)
def test_every_plain_program_passes_and_is_emulated(path):
    source = path.read_text("utf-8")
    assert not check_source(source)
    assert not list(list_unsupported(source))


@pytest.mark.parametrize(
    ("before", "body", "words"),
    [
        ("#include <mma.h>", "", "line 2: <mma.h>"),
        ("", "nvcuda::wmma::mma_sync(a, b, c, d);", "tensor cores"),
        ("", "__pipeline_memcpy_async(s, x, 16);", "cp.async"),
        ("#include <cooperative_groups/memcpy_async.h>", "", "memcpy_async"),
        ("", "auto grid = cooperative_groups::this_grid(); grid.sync();", "a whole grid"),
        ("", "auto cluster = cooperative_groups::this_cluster();", "clusters"),
        ("#include <cuda/pipeline>", "", "<cuda/pipeline>"),
    ],
)
def test_what_only_a_gpu_runs_is_no_mistake(before, body, words):
    source = write_kernel(body, before)
    assert not check_source(source)
    assert any(words in reason for reason in list_unsupported(source))
    assert needs_absent_header(source) == ("<cuda/" in before)


def test_attributes_that_are_allowed_run_nothing():
    assert not {"constructor", "destructor", "ifunc", "section", "alias", "cleanup", "init_priority"} & ATTRIBUTES


def test_a_right_program_has_nothing_wrong():
    assert not check_source(RIGHT)
