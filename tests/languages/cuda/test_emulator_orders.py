"""Atomics have an order, but which one is open: updates that some order loses are lost in a pass, others never are."""

from __future__ import annotations

import pytest
import torch

from languages.cuda.emulated_kernels import Call, needs_emulator, run_kernels, share_folder

pytestmark = needs_emulator
X = torch.arange(256, dtype=torch.float32)
SUM = Call({"x": X}, {"y": ("fp32", (1,))}, {"N": 256})
PLAN = """// workspace total: fp32 [1]
// launch clear grid=(1) block=(1) args=(total)
// launch add grid=({grid}) block=({block}) args=(x, total, N)
// launch copy grid=(1) block=(1) args=(total, y)
__global__ void clear(float *total) {{ total[0] = 0.0f; }}
__global__ void copy(const float *total, float *y) {{ y[0] = total[0]; }}
__global__ void add(const float *x, float *total, int N) {{
  const float own = x[blockIdx.x * blockDim.x + threadIdx.x];
  {body}
}}"""
LOST = {  # an update of it is a load and a store
    "add_and_exchange": "float t = atomicAdd(total, 0.0f); atomicExch(total, t + own);",
    "taken_and_put_back": "float t = atomicExch(total, 0.0f); atomicExch(total, t + own);",
    "swapped_once": """unsigned *bits = (unsigned *)total, t = atomicOr(bits, 0u);
  atomicCAS(bits, t, __float_as_uint(__uint_as_float(t) + own));""",
}
WHOLE = {
    "one_operation": "atomicAdd(total, own);",
    "swapped_until_done": """unsigned *bits = (unsigned *)total, t = atomicOr(bits, 0u), seen = ~t;
  for (; seen != t;) { seen = t; t = atomicCAS(bits, t, __float_as_uint(__uint_as_float(t) + own)); }""",
    "largest_so_far_first": "if (atomicAdd(total, 0.0f) < 1e9f) atomicAdd(total, own);",
}
SHAPES = {"in_a_block": {"grid": 1, "block": 256}, "between_blocks": {"grid": 256, "block": 1}}

PLACES = """// workspace places: int64 [2]
// launch look grid=(1) block=(2) args=(x, places, y, N)
__global__ void look(const float *x, long long *places, float *y, int N) {
  int own = 0;
  places[threadIdx.x] = (long long)&own;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = places[0] == places[1];
}"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[torch.Tensor]] | str]:
    sources = {
        f"{name} {shape}": PLAN.format(body=body, **sizes)
        for name, body in {**LOST, **WHOLE}.items()
        for shape, sizes in SHAPES.items()
    }
    outputs = run_kernels([(source, SUM) for source in sources.values()], share_folder(tmp_path_factory))
    return dict(zip(sources, outputs, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LOST)
def test_updates_are_lost_where_they_may_be(
    answers: dict[str, list[list[torch.Tensor]]], name: str, shape: str
) -> None:
    sums = [float(row[0]) for row in answers[f"{name} {shape}"]]
    assert sums[0] == float(X.sum())
    assert sums[2] != float(X.sum())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WHOLE)
def test_no_update_is_lost_that_no_order_loses(
    answers: dict[str, list[list[torch.Tensor]]], name: str, shape: str
) -> None:
    assert [float(row[0]) for row in answers[f"{name} {shape}"]] == [float(X.sum())] * 4


def test_locals_of_threads_have_one_address_where_nothing_is_watched(tmp_path_factory: pytest.TempPathFactory) -> None:
    (rows,) = run_kernels([(PLACES, SUM)], share_folder(tmp_path_factory))
    assert [float(row[0]) for row in rows] == [0.0, 0.0, 0.0, 1.0]
