"""The paper's 26 tasks asked for in CUDA: right statements for all, and programs written by hand judged."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from opsmith.judging.pool import Pool
from opsmith.records import Outcome, Stage, Task
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.gpu.binding import list_arguments
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.protocols import Equipped, Portable

TASKS = load_tasks([], "cuda")
STEP_TASKS = {task.id: task for task in load_tasks([])}
NORM = """
// launch layer_norm grid=(N) block=(128) args=(E0, S0, D)
extern "C" __global__ void layer_norm(const float *E0, float *S0, long long D)
{
    __shared__ float sums[128];
    const float *row = E0 + blockIdx.x * D;
    float mean = 0.0f;
    for (int part = 0; part < 2; part++) {  // the mean, then the variance
        float sum = 0.0f;
        for (long long d = threadIdx.x; d < D; d += 128) sum += part ? (row[d] - mean) * (row[d] - mean) : row[d];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int step = 64; step > 0; step /= 2) {
            if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
            __syncthreads();
        }
        if (part == 0) mean = sums[0] / D;
        else for (long long d = threadIdx.x; d < D; d += 128)
            S0[blockIdx.x * D + d] = (row[d] - mean) * rsqrtf(sums[0] / D + 1e-5f);
        __syncthreads();
    }
}
"""
GEMM = """
// launch gemm grid=(cdiv(N, 32), M) block=(32) args=(E0, E1, S0, K, M, N)
extern "C" __global__ void gemm(const float *E0, const float *E1, float *S0, long long K, long long M, long long N)
{
    const long long n = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y;
    if (n >= N) return;
    float sum = 0.0f;
    for (long long k = 0; k < K; k++) sum += E0[(k * M + m) * N + n] * E1[(k * M + m) * N + n];
    S0[m * N + n] = sum;
}
"""
GATE = """
// workspace logits: fp32 [M, E]
// launch multiply grid=(M) block=(64) args=(E0, Wg, logits, K, E)
// launch choose grid=(cdiv(M, 64)) block=(64) args=(logits, S0, S1, M, E)
extern "C" __global__ void multiply(const float *E0, const float *Wg, float *logits, long long K, long long E)
{
    for (long long e = threadIdx.x; e < E; e += blockDim.x) {
        float sum = 0.0f;
        for (long long k = 0; k < K; k++) sum += E0[blockIdx.x * K + k] * Wg[k * E + e];
        logits[blockIdx.x * E + e] = sum;
    }
}
extern "C" __global__ void choose(const float *logits, float *S0, float *S1, long long M, long long E)
{
    const long long m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= M) return;
    const float *row = logits + m * E;
    long long best = 0;
    for (long long e = 1; e < E; e++) if (row[e] > row[best]) best = e;
    float total = 0.0f;
    for (long long e = 0; e < E; e++) total += expf(row[e] - row[best]);
    for (long long e = 0; e < E; e++) {
        S1[m * E + e] = expf(row[e] - row[best]) / total;
        S0[m * E + e] = e == best ? 1.0f : 0.0f;
    }
}
"""
PROGRAMS = {"norm_0": NORM, "gemm_0": GEMM, "index_0": GATE}


@pytest.mark.parametrize("task", TASKS, ids=[task.id for task in TASKS])
def test_each_task_states_arrays_and_sizes_and_nothing_of_step(task: Task) -> None:
    shown = yaml.safe_load(task.shown)
    problem = read_task_problem(task.text)
    assert list(shown["arguments"]) == [argument.name for argument in list_arguments(problem)]
    outputs = [name for name, words in shown["arguments"].items() if words.startswith("output ")]
    assert outputs == [output.name for output in problem.outputs]
    assert shown["reference"].keys() == set(outputs)
    assert all(re.fullmatch(r"the size \w+", shown["arguments"][name]) for name in shown["sizes"])
    assert not {"function", "fns", "interface"} & shown.keys()
    assert "step." not in task.shown
    cuda, step = get_target("cuda"), get_target("step")
    assert isinstance(cuda, Portable)
    assert isinstance(step, Portable)
    assert cuda.problem_digest(task) == step.problem_digest(STEP_TASKS[task.id]), "the same problem"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    target = get_target("cuda")
    if isinstance(target, Equipped) and (lack := target.explain_lack()):
        pytest.skip(lack)
    with Pool(1) as opened:
        yield opened


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_written_by_hand_is_right_and_spoiled_is_wrong(pool: Pool, name: str) -> None:
    (task,) = (task for task in TASKS if task.id == name)
    spoiled = PROGRAMS[name].replace("[threadIdx.x + step]", "[threadIdx.x]").replace("sum += E0", "sum -= E0")
    right, wrong = (pool.verify(task, source) for source in (PROGRAMS[name], spoiled))
    assert right.outcome is Outcome.PASSED, right.message
    assert (wrong.outcome, wrong.stage) == (Outcome.REFUSED, Stage.MATCH), wrong.message
