"""What a model is told of CUDA: short enough, with a pair that is as a task is shown."""

import pytest
import yaml

from opsmith.agents.prompt import read_prompt
from opsmith.api import load_task
from opsmith.models import Message
from opsmith.models.tokens import estimate_tokens
from opsmith.suites import SUITES, task_files
from opsmith.targets import get_target
from opsmith.targets.cuda import CUDA
from opsmith.targets.cuda.recognition import is_program
from opsmith.targets.native.prompt_texts import EXAMPLE
from opsmith.targets.protocols import GUARDIAN, PROPOSER

MOST_TOKENS = 3000


def test_the_prompts_are_short():
    assert estimate_tokens(CUDA.base_prompt(PROPOSER)) <= MOST_TOKENS
    assert estimate_tokens(CUDA.improvement_prompt(True)) <= MOST_TOKENS
    assert estimate_tokens(CUDA.describe_platform()) <= MOST_TOKENS // 3


def test_it_is_one_mapping_whose_example_is_a_pair_of_no_suite():
    ((shown, program),) = read_prompt([Message("system", CUDA.base_prompt(PROPOSER))]).examples
    assert yaml.safe_load(shown).keys() == yaml.safe_load(load_task("softmax", "cuda").shown).keys()
    assert is_program(program)
    assert EXAMPLE not in {path.stem for suite in SUITES for path in task_files(suite)}


@pytest.mark.parametrize(
    "words", ["workspace", "next_pow2", "cdiv", "int64_t", "strided", "__nv_bfloat16", "sm_90", "grid.y", "junk"]
)
def test_it_says_what_a_program_may_rely_on(words):
    assert words in CUDA.base_prompt(PROPOSER)


def test_the_pair_of_improvement_is_a_mapping_with_both_programs():
    example = yaml.safe_load(CUDA.improvement_prompt(True))["example"]
    assert is_program(example["before"])
    assert is_program(example["after"])
    assert example["suggestion"].keys() == {"what", "where", "why", "effect"}
    assert "example" not in yaml.safe_load(CUDA.improvement_prompt(False))


def test_nobody_but_the_proposer_is_asked_about_cuda():
    target = get_target("cuda")
    assert target.base_prompt(PROPOSER)
    assert target.base_prompt(GUARDIAN) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("// launch f grid=(1) block=(1) args=(y)\n__global__ void f(float *y) { *y = 1; }", True),
        (
            "#include <cuda_fp16.h>\ntemplate <int N> __device__ int g() { return N; }\n__global__ void f(int *y) { *y = g<3>(); }\n",
            True,
        ),
        ('extern "C" __global__ void f(float *y) { *y = 1; }', True),
        ("Here is the kernel: __global__ void f(float *y) { *y = 1; }", False),
        ("// launch f grid=(1) block=(1) args=(y)\n__global__ void f(float *y) { *y = 1; ", False),
        ("// a __global__ function is missing\nvoid f(float *y) { *y = 1; }", False),
        ("__device__ float f(float y) { return y; }", False),
    ],
)
def test_a_program_is_told_from_prose(text, expected):
    assert is_program(text) is expected
