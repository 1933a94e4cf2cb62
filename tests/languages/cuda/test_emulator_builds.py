"""Builds for the emulator: plan and kernel that disagree are findings, what it does not know is said, and a program that
breaks out of its stack or keeps state harms nobody but itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from languages.cuda.emulated_kernels import _RUN, Call, build_kernel, needs_emulator, run_kernel
from opsmith.running.compiler import Artefact
from opsmith.targets.cuda.dialect import CUDA_DIALECT
from opsmith.targets.gpu.emulator.building import Unemulated
from opsmith.targets.gpu.emulator.library import LibraryFile, read_name
from opsmith.targets.native.build import BuildRefusal

pytestmark = needs_emulator
X = torch.arange(64, dtype=torch.float32)
CALL = Call({"x": X}, {"y": ("fp32", (64,))}, {"N": 64, "eps": 0.5})
LAUNCH = "// launch k grid=(1) block=(64) args=(x, y, N, eps)\n"
BODY = " { if (threadIdx.x < 64) y[threadIdx.x] = x[threadIdx.x]; }"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("const float *x, float *y, int N", "as many as k takes: const float *x, float *y, int N"),
        ("const double *x, float *y, int N, float eps", "the input x for the parameter const double *x"),
        ("float *x, float *y, int N, float eps", "expected the input x, fp32: const float *"),
        ("const float *x, const float *y, int N, float eps", ""),
        ("const float *x, int *y, int N, float eps", "the output y for the parameter int *y"),
        ("const float *x, float *y, float *N, float eps", "expected the number N, int or long long"),
        ("const float *x, float *y, int N, int eps", "expected the number eps, float or double"),
    ],
)
def test_a_kernel_that_disagrees_with_its_launch_is_refused_on_its_line(parameters: str, words: str) -> None:
    build = build_kernel(
        f"\n{LAUNCH}__global__ void k({parameters}){BODY if 'const float *y' not in parameters else ' {}'}", CALL
    )
    if not words:
        assert isinstance(build, Artefact), build
        return
    assert isinstance(build, BuildRefusal), build
    assert build.errors[0].line == 2
    assert build.errors[0].kind == "COMPILE"
    assert words in str(build.errors[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('asm volatile("mov.u32 %0, %laneid;" : "=r"(n));', "line 5: inline PTX (asm)"),
        ("nvcuda::wmma::fill_fragment(f, 0);", "line 5: wmma"),
        ("__pipeline_commit();", "line 5: cp.async and libcu++"),
        ("namespace cg = cooperative_groups;", "line 5: "),
        ("k<<<1, 1>>>(x, y, N, eps);", "line 5: launches from a kernel"),
        ("__some_new_intrinsic(n);", "line 5: '__some_new_intrinsic' was not declared"),
        ("opsmith_fence(3);", "line 5: names of the emulator"),
    ],
)
def test_what_is_not_emulated_is_said_with_its_line(text: str, words: str) -> None:
    source = f"{LAUNCH}__global__ void k(const float *x, float *y, int N, float eps)\n{{\n  int n = N;\n  {text}\n}}"
    build = build_kernel(source, CALL)
    assert isinstance(build, Unemulated), build
    assert build.reason.startswith(f"not emulated: {words}")


def test_words_in_comments_and_texts_do_not_matter() -> None:
    source = (
        LAUNCH
        + '// asm and wmma\n/* cub:: */ __global__ void k(const float *x, float *y, int N, float eps) { printf("<<< asm"); }'
    )
    assert isinstance(build_kernel(source, CALL), Artefact)


def test_shared_arrays_have_their_names() -> None:
    source = LAUNCH + (
        "template <int N> __device__ float hold(float v, int t) {\n"
        "  __shared__ float kept[N]; kept[t % N] = v; __syncthreads(); return kept[(t + 1) % N];\n}\n"
        "__global__ void k(const float *x, float *y, int N, float eps) {\n"
        "  __shared__ float first[3], second[5];\n"
        "  __shared__ double third;\n"
        "  int t = threadIdx.x;\n"
        "  first[t % 3] = x[t], second[t % 5] = x[t], third = x[t];\n"
        "  __syncthreads();\n"
        "  y[t] = first[(t + 1) % 3] + second[(t + 1) % 5] + (float)third + hold<7>(eps, t);\n}"
    )
    build = build_kernel(source, CALL)
    assert isinstance(build, Artefact), build
    variables = {
        variable.name: variable.size for variable in LibraryFile(build.data, CUDA_DIALECT.program).list_shared()
    }
    assert variables == {"first": 12, "second": 20, "third": 8, "kept": 28}
    assert read_name("_ZZN12_GLOBAL__N_11kEPKfPfE4tile_0") == "tile"


def _run_alone(source: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    build = build_kernel(source, CALL)
    assert isinstance(build, Artefact), build
    (folder / "kernel.so").write_bytes(build.data)
    order = [(str(folder / "kernel.so"), CALL.bind(source).write_json(), CALL.encode()[1])]
    return subprocess.run(
        [sys.executable, "-c", _RUN], input=pickle.dumps(order), capture_output=True, timeout=60, check=False
    )


def test_a_recursion_without_end_kills_its_process_at_once(tmp_path: Path) -> None:
    source = LAUNCH + (
        "__device__ float dive(const float *x, float v) { return v + dive(x, v * x[1] + 1) * 2; }\n"
        "__global__ void k(const float *x, float *y, int N, float eps) { y[threadIdx.x] = dive(x, eps); }"
    )
    begin = time.monotonic()
    answer = _run_alone(source, tmp_path)
    assert answer.returncode < 0
    assert time.monotonic() - begin < 30


def test_state_between_draws_shows_in_outputs(tmp_path: Path) -> None:
    source = LAUNCH + (
        "__device__ int calls;\n"
        "__global__ void k(const float *x, float *y, int N, float eps) {\n"
        "  if (threadIdx.x == 0) calls += 1;\n  __syncthreads();\n  y[threadIdx.x] = x[threadIdx.x] * calls;\n}"
    )
    outputs = run_kernel(source, CALL, tmp_path, draws=3)
    assert not isinstance(outputs, str), outputs
    assert torch.equal(outputs[0][0], outputs[0][1])  # every draw as the first of a process
    assert not torch.equal(outputs[2][0], outputs[0][0])  # and as one of many


def test_a_variable_that_is_set_by_each_call_is_no_state(tmp_path: Path) -> None:
    source = (
        LAUNCH.replace(" k ", " start ").replace("x, y, N, eps", "x")
        + LAUNCH
        + (
            "__device__ float factor;\n"
            "__global__ void start(const float *x) { if (threadIdx.x == 0) factor = x[3]; }\n"
            "__global__ void k(const float *x, float *y, int N, float eps) { y[threadIdx.x] = x[threadIdx.x] * factor; }"
        )
    )
    outputs = run_kernel(source, CALL, tmp_path, draws=3)
    assert not isinstance(outputs, str), outputs
    assert all(torch.equal(output, 3 * X) for row in outputs for output in row)


def test_what_a_thread_does_not_set_differs_between_passes(tmp_path: Path) -> None:
    source = (
        LAUNCH
        + "__global__ void k(const float *x, float *y, int N, float eps) { if (threadIdx.x) y[threadIdx.x] = 1; }"
    )
    outputs = run_kernel(source, CALL, tmp_path)
    assert not isinstance(outputs, str), outputs
    assert len({bytes(pass_[0].view(torch.uint8)) for pass_ in outputs}) > 1


def test_a_grid_of_many_blocks_is_affordable(tmp_path: Path) -> None:
    source = "// launch k grid=(100000) block=(32) args=(x, y, N, eps)\n" + (
        "__global__ void k(const float *x, float *y, int N, float eps) {\n"
        "  __shared__ float own;\n  if (threadIdx.x == 0) own = x[blockIdx.x % N];\n  __syncthreads();\n"
        "  if (blockIdx.x < N && threadIdx.x == 0) y[blockIdx.x] = own;\n}"
    )
    begin = time.monotonic()
    outputs = run_kernel(source, CALL, tmp_path)
    assert not isinstance(outputs, str), outputs
    assert all(torch.equal(row[0], X) for row in outputs)
    assert time.monotonic() - begin < 60
