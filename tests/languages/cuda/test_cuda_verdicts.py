"""Verdicts on CUDA programs, through all stages: NVRTC, the emulator, hidden sizes, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import opsmith
from languages.cuda.programs import PLAN, RIGHT, write_kernel
from languages.gpu_programs import needs_cuda
from opsmith.agents.prompt import read_prompt
from opsmith.api import load_task, verify
from opsmith.cli.app import build_app
from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.models import Message
from opsmith.records import Boundary, Level, Outcome, Task
from opsmith.targets import get_target
from opsmith.targets.cuda import CUDA
from opsmith.targets.cuda.building import CUBIN, KERNELS
from opsmith.targets.gpu.emulator.running import EMULATED
from opsmith.targets.gpu.emulator.running import PLAN as PLAN_ARTEFACT
from opsmith.targets.gpu.plan import read_bound_plan
from opsmith.targets.hidden import NOT_SHOWN
from opsmith.targets.native.prompt_texts import EXAMPLE, PLAIN, read_prompt_file
from opsmith.targets.protocols import PROPOSER

pytestmark = needs_cuda
PROMPTS = Path(opsmith.__file__).parent / "targets" / "cuda" / "prompts"
SUM = "float sum = 0; for (int64_t n = threadIdx.x; n < N; n += 32) sum += x[blockIdx.x * N + n];"
FOLD = "for (int o = 16; o; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);"
STORE = "if (threadIdx.x == 0) y[blockIdx.x] = sum;"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=10.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("row_sum", "cuda")


@pytest.mark.parametrize("name", [EXAMPLE, PLAIN])
def test_the_programs_of_the_prompts_are_right(name: str) -> None:
    example = load_task(PROMPTS / f"{EXAMPLE}.yaml", "cuda")
    verdict = verify(example, read_prompt_file(CUDA.prompt_texts, f"{name}.cu"), trust_tasks=True)
    assert verdict.passed, verdict.message


def test_the_example_is_shown_as_a_task_is() -> None:
    example = load_task(PROMPTS / f"{EXAMPLE}.yaml", "cuda")
    ((shown, program),) = read_prompt([Message("system", get_target("cuda").base_prompt(PROPOSER) or "")]).examples
    assert yaml.safe_load(shown) == yaml.safe_load(example.shown)
    assert program == read_prompt_file(CUDA.prompt_texts, f"{EXAMPLE}.cu")


def test_a_right_program_passes_and_says_that_it_was_emulated(pool: Pool, task: Task) -> None:
    verdict = pool.verify(task, write_kernel(f"{SUM} {FOLD} {STORE}"))
    assert verdict.passed, verdict.message
    assert "sm_90, emulated by g++" in verdict.build
    assert verdict.trials > 15


@pytest.mark.parametrize(
    ("source", "stage", "words"),
    [
        ("__global__ void row_sum(float *y) {}", "PARSE", "a program without a launch line"),
        (RIGHT.replace("args=(x, y, ", "args=(y, x, "), "PARSE", "x (input, fp32)"),
        (RIGHT.replace("args=(x, y, M, N)", "args=(x, y, M)").replace("args=(x, y, N)", "args=(x, y)"), "PARSE", "as row_sum on line"),
        (RIGHT.replace("launch row_sum", "launch row_sums"), "PARSE", "write row_sum"),
        (RIGHT.replace("const float", "const double"), "PARSE", "declare it as const float *"),
        (write_kernel(f"{SUM} {FOLD} {STORE}").replace("int64_t N", "float N"), "PARSE", "a whole number: int or int64_t"),
        (write_kernel(f"{SUM} {FOLD} {STORE}").replace("const float *x", "float *x"), "PARSE", "inputs may only be read"),
        (write_kernel(f"{SUM} {FOLD} {STORE}").replace("block=(32)", "block=(2048)"), "PARSE", "expected: 1 to 1024"),
        (write_kernel(f"{SUM} {FOLD} flot z;"), "COMPILE", 'identifier "flot" is undefined'),
        (write_kernel(f"{SUM} {FOLD} x[0] = 1;"), "COMPILE", "inputs are const"),
        (write_kernel("__shared__ float t[64 << 10]; t[threadIdx.x] = 1; __syncthreads(); y[0] = t[x[0] > 0];"), "COMPILE", "static shared memory"),
        (write_kernel(f"{SUM} {STORE}"), "MATCH", "DATA"),
        (write_kernel(f"{SUM} {FOLD} y[blockIdx.x] = sum;"), "RUN", "race"),
        (write_kernel(f"{SUM} {FOLD} if (threadIdx.x == 0) y[blockIdx.x + 1] = sum;"), "RUN", "line 3"),
        (write_kernel(f"__shared__ float t[32]; {SUM} t[threadIdx.x] = sum; y[blockIdx.x] = t[31 - threadIdx.x];"), "RUN", "t[31]"),
        (write_kernel(f"{SUM} if (threadIdx.x < 16) __syncthreads(); {FOLD} {STORE}"), "RUN", "__syncthreads"),
        (write_kernel(f"__shared__ float t[32]; {SUM} {FOLD} if (threadIdx.x == 0) y[blockIdx.x] = sum + t[3];"), "RUN", "line 3"),
    ],
)  # fmt: skip
def test_a_wrong_program_is_refused_where_it_goes_wrong(
    pool: Pool, task: Task, source: str, stage: str, words: str
) -> None:
    verdict = pool.verify(task, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == stage, verdict.message
    assert words in verdict.message


@pytest.mark.parametrize(
    ("before", "body", "words"),
    [
        ("#include <mma.h>", "", "not emulated: line 2: <mma.h>"),
        ("#include <cuda_pipeline.h>", "__pipeline_wait_prior(0);", "cp.async"),
        ("#include <cuda/pipeline>", "", "<cuda/pipeline>"),
    ],
)
def test_what_only_a_gpu_runs_stays_unjudged(pool: Pool, task: Task, before: str, body: str, words: str) -> None:
    verdict = pool.verify(task, write_kernel(f"{body} {SUM} {FOLD} {STORE}", before))
    assert verdict.outcome is Outcome.UNJUDGED
    assert words in verdict.message
    assert "or a GPU" in verdict.message


def test_a_mistake_is_found_before_that_a_gpu_is_needed(pool: Pool, task: Task) -> None:
    verdict = pool.verify(task, write_kernel("flot z;", "#include <mma.h>"))
    assert (verdict.outcome, verdict.stage.name) == (Outcome.REFUSED, "COMPILE")


@pytest.mark.parametrize(
    "wrong",
    [
        "__shared__ float t[2]; if (N > 3000) { t[threadIdx.x & 1] = sum; sum = t[1]; }",
        "if (N > 3000) sum += x[M * N + 1000];",
        "if (N > 3000) { for (;;) __syncwarp(); }",
        "if (N > 3000) sum += 1;",
    ],
)
def test_what_goes_wrong_at_hidden_sizes_is_veiled(task: Task, wrong: str) -> None:
    """The kernel is right at every size that is stated."""
    with Pool(1, trial_deadline=2.0) as impatient:
        verdict = impatient.verify(task, write_kernel(f"{SUM} {wrong} {FOLD} {STORE}"), Level.FULL)
    assert verdict.outcome is Outcome.REFUSED, verdict.message
    assert verdict.stage.name in ("RUN", "MATCH")
    assert NOT_SHOWN in verdict.message
    for word in ("thread", "block", "line ", "3000", "t[", "x["):
        assert word not in verdict.message, verdict.message


def test_a_plan_that_fails_at_hidden_sizes_is_veiled(pool: Pool, task: Task) -> None:
    source = write_kernel(f"{SUM} {FOLD} {STORE}").replace(
        "block=(32)", "block=(32) shared=max(N - 1000, 0) // 300 * 500000"
    )
    verdict = pool.verify(task, source)
    assert verdict.outcome is Outcome.REFUSED, verdict.message
    assert NOT_SHOWN in verdict.message
    assert "shared" not in verdict.message


def test_artefacts_are_the_cubin_its_symbols_the_plan_and_the_emulated_library(task: Task) -> None:
    build = CUDA.build_program(task, RIGHT)
    assert build.artefacts.keys() == {EMULATED, PLAN_ARTEFACT, CUBIN, KERNELS}, build.failure
    assert read_bound_plan(build.artefacts[PLAN_ARTEFACT]).launches[0].kernel == "row_sum"
    assert json.loads(build.artefacts[KERNELS]) == {"arch": "sm_90", "symbols": {"row_sum": "row_sum"}}
    assert build.artefacts[CUBIN].startswith(b"\x7fELF")


def test_equal_programs_are_built_once(task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from opsmith.targets.cuda import building
    from opsmith.targets.native.cache import BuildCache

    request, store = CUDA.make_request(task, RIGHT), BuildCache(tmp_path)
    first = building.build_cuda(request, store)
    monkeypatch.setattr(building, "compile_kernels", lambda *_: pytest.fail("compiled again"))
    assert building.build_cuda(request, store) == first


def test_the_architecture_is_an_option(pool: Pool) -> None:
    task = load_task("row_sum", "cuda", {"arch": "sm_80"})
    assert task.digest != load_task("row_sum", "cuda").digest
    assert "sm_80" in pool.verify(task, RIGHT).build
    with pytest.raises(UsageError, match="option arch: given 'sm_13'; expected one of sm_80"):
        load_task("row_sum", "cuda", {"arch": "sm_13"})


def test_a_verdict_is_a_command(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    program.write_text(RIGHT)
    result = CliRunner().invoke(build_app(), ["verify", "row_sum", "--impl", str(program), "--target", "cuda"])
    assert result.exit_code == 0, result.output
    assert "passed" in result.output
    program.write_text(RIGHT.replace(PLAN, "").replace("// launch", "// lunch"))
    result = CliRunner().invoke(
        build_app(), ["verify", "row_sum", "--impl", str(program), "--target", "cuda", "--json"]
    )
    assert json.loads(result.output)["outcome"] == "refused"
