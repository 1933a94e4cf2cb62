"""Kernels that attack what runs them: always the candidate's refusal, and the next verdict is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.cuda.programs import RIGHT, write_kernel
from languages.gpu_programs import needs_cuda
from opsmith.api import load_task
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.running.sandbox import Sandbox

pytestmark = needs_cuda
SECRET = "TOP-SECRET"
KERNELS = {
    "a null pointer": write_kernel("float *p = 0; p[1] = 1; y[0] = p[1];"),
    "a wild pointer": write_kernel("((float *)0x123456789000ull)[threadIdx.x] = 1; y[0] = 0;"),
    "a pointer to the stack of another": write_kernel(
        "__shared__ float *p; float own = 1; if (threadIdx.x == 0) p = &own; __syncthreads(); *p = threadIdx.x; y[0] = *p;"
    ),
    "all memory behind an output": write_kernel("for (int64_t n = 0;; n++) y[n] = 1;"),
    "all memory before an output": write_kernel("for (int64_t n = 0;; n--) y[n] = 1;"),
    "a loop without end": write_kernel("volatile float z = 1; while (z > 0) z = 1; y[0] = z;"),
    "a loop that waits": write_kernel("while (atomicAdd((int *)y, 0) != 3) { } y[0] = 0;"),
    "a recursion without end": write_kernel(
        "y[0] = deep(x, N);",
        "__device__ float deep(const float *x, int64_t n) { float t[64]; t[n & 63] = x[0]; return deep(x, n + 1) + t[n & 31]; }",
    ),
    "a large array of a thread": write_kernel("float t[100000]; for (int i = 0; i < 100000; i++) t[i] = i; y[0] = t[N];"),
    "a call of a number": write_kernel("((void (*)())(size_t)N)(); y[0] = 0;"),
    "code of its own": write_kernel(
        "((void (*)())code)(); y[0] = 0;", "__constant__ unsigned char code[] = {0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05};"
    ),
    "an exit": write_kernel("exit(0); y[0] = 0;", 'extern "C" __device__ void exit(int);'),
    "a system call": write_kernel("y[0] = syscall(60, 0);", 'extern "C" __device__ long syscall(long, long);'),
    "a command": write_kernel('y[0] = system("id");', 'extern "C" __device__ int system(const char *);'),
    "a file": write_kernel('y[0] = open("/etc/passwd", 0);', 'extern "C" __device__ int open(const char *, int);'),
    "the library's own begin": write_kernel("y[0] = __ehdr_start[0];", 'extern "C" char __ehdr_start[];'),
    "a fault of its own": write_kernel("__builtin_trap(); y[0] = 0;"),
    "outputs of nothing": write_kernel(""),
    "outputs of zeros": write_kernel("if (threadIdx.x == 0) y[blockIdx.x] = 0;"),
    "a remembered answer": write_kernel(
        "if (threadIdx.x == 0) y[blockIdx.x] = table[0];", "__constant__ float table[4096];"
    ),
    "a division by zero": write_kernel("y[0] = (int)N / (int)(M - M);"),
    "a grid of the largest size": RIGHT.replace("grid=(M)", "grid=(2147483647)"),
    "workspaces of everything": "// workspace w: fp32 [M * N * 1000000]\n" + RIGHT,
    "blocks without work": write_kernel("y[0] = 0;").replace("block=(32)", "block=(1024)").replace("grid=(M)", "grid=(M * 1000000)"),
    "a name of ours": write_kernel("opsmith_place(0, 0, 0); y[0] = 0;", 'extern "C" int opsmith_place(long, int, int);'),
}  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSMITH_API_KEY", SECRET)
        with Pool(1, trial_deadline=2.0, sandbox=Sandbox(memory=2 << 30)) as shared:
            assert shared.verify(load_task("row_sum", "cuda"), RIGHT).passed
            yield shared


@pytest.mark.parametrize("name", KERNELS)
def test_a_hostile_kernel_is_refused_and_the_next_verdict_is_right(pool: Pool, name: str) -> None:
    task = load_task("row_sum", "cuda")
    verdict = pool.verify(task, KERNELS[name])
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    for secret in (SECRET, "root:", "/usr/", "/tmp/"):
        assert secret not in verdict.message
    assert len(verdict.message) < 10_000
    assert pool.verify(task, RIGHT).passed
