"""What is said of a build: resources of each kernel with every figure explained; occupancy is NVIDIA's own."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from languages.cuda.programs import PLAIN
from languages.gpu_programs import needs_cuda
from opsmith.api import load_task
from opsmith.errors import OpsmithError
from opsmith.running.toolchain import CXX_COMPILER, find_toolchain
from opsmith.targets.cuda import CUDA
from opsmith.targets.cuda.toolkit import find_toolkit
from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES, KernelLoad, compute_occupancy

pytestmark = needs_cuda
LOADS = 4000
CALCULATOR = r"""
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "cuda_occupancy.h"
int main() {
  int major, minor, warps, shared, threads, registers, used, barriers;
  while (scanf("%d %d %d %d %d %d %d %d", &major, &minor, &warps, &shared, &threads, &registers, &used, &barriers) == 8) {
    cudaOccDeviceProp device;
    device.computeMajor = major, device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = warps * 32, device.warpSize = 32;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = shared;
    device.sharedMemPerBlockOptin = shared - 1024, device.reservedSharedMemPerBlock = 1024;
    device.numSms = 100;
    cudaOccFuncAttributes kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.numBlockBarriers = barriers;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared - 1024;
    cudaOccDeviceState state;
    state.cacheConfig = CACHE_PREFER_NONE, state.carveoutConfig = 100;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, used)) return 1;
    printf("%d\n", result.activeBlocksPerMultiprocessor);
  }
}
"""


def draw_loads(seed: int) -> list[tuple[str, KernelLoad]]:
    rng = random.Random(seed)
    return [
        (
            rng.choice(list(ARCHITECTURES)),
            KernelLoad(
                rng.randint(1, 1024), rng.randint(1, 255), rng.choice([0, rng.randint(0, 240_000)]), rng.randint(0, 4)
            ),
        )
        for _ in range(LOADS)
    ]


def test_occupancy_is_that_of_nvidias_calculator(tmp_path: Path) -> None:
    toolkit, toolchain = find_toolkit(), find_toolchain(CXX_COMPILER)
    assert toolkit is not None
    assert toolchain is not None
    (tmp_path / "calculator.cpp").write_text(CALCULATOR)
    program = tmp_path / "calculator"
    subprocess.run(
        [toolchain.driver, "-w", f"-I{toolkit.headers}", tmp_path / "calculator.cpp", "-o", program], check=True
    )
    loads = draw_loads(1)
    rows = [
        f"{int(arch[3:]) // 10} {int(arch[3:]) % 10} {ARCHITECTURES[arch].warps} {ARCHITECTURES[arch].shared} "
        f"{load.threads} {load.registers} {load.shared} {load.barriers}\n"
        for arch, load in loads
    ]
    done = subprocess.run([program], input="".join(rows), capture_output=True, text=True, check=True)
    expected = list(map(int, done.stdout.split()))
    assert [compute_occupancy(arch, load).blocks for arch, load in loads] == expected
    assert len(set(expected)) > 20


def test_every_figure_is_explained() -> None:
    text = CUDA.describe_build(load_task("softmax", "cuda"), (PLAIN / "softmax.cu").read_text("utf-8"))
    for words in (
        "launches at M = ",
        "registers of a thread (255 at most",
        "no spills",
        "bytes of shared memory of a block",
        "1 barrier: __syncthreads waits",
        "theoretical occupancy ",
        "bound by ",
        "multiprocessors of an H100",
    ):
        assert words in text, text


SPILLING = """// launch row_sum grid=(M) block=(33) shared=100000 args=(x, y, M, N)
__global__ void __launch_bounds__(1024, 2) row_sum(const float *x, float *y, int64_t M, int64_t N)
{
    float values[64], copies[64];
    for (int i = 0; i < 64; i++) { values[i] = x[i % N]; copies[i] = x[(i * 7) % N]; }
    for (int64_t n = 0; n < N; n++) { values[n % 64] += copies[(n * 5) % 64]; }
    y[blockIdx.x] = values[N % 64];
}
"""


def test_what_costs_is_said() -> None:
    text = CUDA.describe_build(load_task("row_sum", "cuda", {"arch": "sm_86"}), SPILLING)
    assert "bytes of local memory of a thread: arrays that a variable indexes" in text
    assert "bound by shared memory" in text
    assert "the last warp of a block has 31 idle lanes" in text
    assert "have nothing to do" in text
    assert "sm_86" in text


def test_a_program_that_does_not_compile_has_no_remarks() -> None:
    source = SPILLING.replace("float values", "flot values")
    with pytest.raises(OpsmithError, match="flot"):
        CUDA.describe_build(load_task("row_sum", "cuda"), source)
