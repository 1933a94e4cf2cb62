"""What the emulator finds: each planted mistake at its line, and the same kernel, mended, runs."""

from __future__ import annotations

from pathlib import Path

import torch

from languages.cuda.emulated_kernels import Call, needs_emulator, run_kernel

pytestmark = needs_emulator
X = torch.arange(256, dtype=torch.float32)
ROW = Call({"x": X}, {"y": ("fp32", (256,))}, {"N": 256})

REVERSE = """// launch k grid=(1) block=(256) args=(x, y, N)
__global__ void k(const float *x, float *y, int N) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = x[t];
  BARRIER
  y[t] = tile[N - 1 - t];
}
"""


def test_a_missing_barrier_is_a_race(tmp_path: Path) -> None:
    finding = run_kernel(REVERSE.replace("BARRIER", ""), ROW, tmp_path)
    assert isinstance(finding, str)
    assert finding.startswith("line 7: ") or finding.startswith("line 5: ")
    assert "tile[" in finding


def test_the_same_kernel_with_its_barrier_runs(tmp_path: Path) -> None:
    outputs = run_kernel(REVERSE.replace("BARRIER", "__syncthreads();"), ROW, tmp_path)
    assert not isinstance(outputs, str), outputs
    assert all(torch.equal(row[0], X.flip(0)) for row in outputs)
