"""Host code for programs in CUDA: C++ compiles it against NVIDIA's headers, and it launches what the plan says.

No GPU is needed: kernels have no bodies here, and a runtime of the tests' own prints each launch.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import opsmith
from opsmith.problems.problem import Problem
from opsmith.suites import load_tasks
from opsmith.targets.cuda.host_code.expressions import FUNCTIONS, write_expression
from opsmith.targets.cuda.host_code.launching import FILE, list_arguments, write_kernel_file
from opsmith.targets.cuda.host_code.torch_extension import bind_source, write_torch_extension
from opsmith.targets.cuda.host_code.torch_module import write_torch_module
from opsmith.targets.gpu.expressions import Expression, ExpressionError, evaluate
from opsmith.targets.gpu.plan import NUMBER, WHOLE, BoundPlan
from opsmith.targets.gpu.resolving import DeviceLimits, PlanFault, resolve_plan
from opsmith.targets.native.task import read_native_task
from opsmith.targets.programs import Solved

HERE = Path(__file__).parent
PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"
TASKS = {task.id: task for task in load_tasks(["kernels"], "c")}  # whose problems are those of CUDA


def find_headers() -> Path | None:
    """NVIDIA's, as the extra `cuda` installs them."""
    spec = find_spec("nvidia")
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec is not None else []
    return next((path.parent for place in places for path in place.glob("cu*/include/cuda_runtime.h")), None)


HEADERS = find_headers()
pytestmark = pytest.mark.skipif(
    HEADERS is None or shutil.which("g++") is None, reason="g++ or the headers of the extra cuda are not installed"
)


def read_plain(name: str) -> str:
    return (PLAIN / f"{name}.cu").read_text()


def find_problem(name: str) -> Problem:
    return read_native_task(TASKS[name].text)[0]


_TYPES = "struct half;\nusing __half = half;\nstruct __nv_bfloat16;"


def drop_bodies(source: str) -> str:
    """The kernels as empty functions: what a compiler of C++ can read without the rest of NVIDIA's headers."""
    plain = re.sub(r"__launch_bounds__\([^)]*\)", "", source)
    kernels = re.findall(r'extern "C" (__global__ void[^{]*)\{', plain)
    return "\n".join([_TYPES, *(f'extern "C" {kernel}{{}}' for kernel in kernels)])


def compile_program(folder: Path, text: str) -> Path:
    (folder / "main.cpp").write_text(text)
    words = ["g++", "-std=c++17", "-w", "-O0", f"-I{HERE}", f"-I{HEADERS}", "main.cpp", "-o", "main"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "main"


def write_main(plan: BoundPlan) -> str:
    """Reads numbers from standard input, a line for each draw, and launches; a fault is printed."""
    arguments = list(list_arguments(plan))
    names = [f'  kernel_names()[reinterpret_cast<const void *>({name})] = "{name}";' for name in plan.list_kernels()]
    numbers = [argument for argument in arguments if argument.kind == NUMBER]
    reads = [f"    {'int64_t' if n.type == WHOLE else 'double'} {n.name}; std::cin >> {n.name};" for n in numbers]
    values = [n.name if n.kind == NUMBER else "nullptr" for n in arguments]
    return "\n".join(
        [
            "\n#include <iostream>\nint main() {",
            *names,
            "  int count; std::cin >> count;\n  while (count--) {",
            *reads,
            f"    try {{ opsmith_launch({', '.join([*values, 'nullptr'])}); }}",
            '    catch (const std::exception &error) { std::printf("\\"%s\\"\\n", error.what()); }',
            '    std::printf("null\\n");\n  }\n}',
        ]
    )


def run_draws(program: Path, draws: Sequence[Sequence[float]]) -> list[list[object]]:
    """What was launched at the numbers of each draw."""
    lines = "\n".join(" ".join(map(str, numbers)) for numbers in draws)
    done = subprocess.run([program], input=f"{len(draws)}\n{lines}\n", capture_output=True, text=True, check=True)
    groups: list[list[object]] = [[]]
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row is None:
            groups.append([])
        else:
            groups[-1].append(row)
    return groups[:-1]


def list_expected(plan: BoundPlan, numbers: Sequence[float]) -> list[object] | None:
    """What `resolve_plan` says of them, where memory for workspaces is not limited; None: a fault."""
    try:
        resolved = resolve_plan(plan, numbers, DeviceLimits(workspaces=2**62))
    except PlanFault:
        return None
    return [[launch.kernel, list(launch.grid), list(launch.block), launch.shared] for launch in resolved.launches]


@pytest.mark.parametrize("name", ["mean_variance", "rms_norm", "cross_entropy", "top_k", "conv2d"])
def test_what_is_launched_is_what_the_plan_says_at_any_size(name: str, tmp_path: Path) -> None:
    problem, source = find_problem(name), read_plain(name)
    plan = bind_source(source, problem)
    text = write_kernel_file(drop_bodies(source), plan, name)
    program = compile_program(tmp_path, f'#include "recording_runtime.h"\n{text}{write_main(plan)}')
    generator = random.Random(name)
    draws = [[size(generator) if type_ == WHOLE else 0.5 for _, type_ in plan.numbers] for _ in range(200)]
    launched = run_draws(program, draws)
    expected = [list_expected(plan, numbers) for numbers in draws]
    assert sum(rows is not None for rows in expected) > 50
    for numbers, rows, told in zip(draws, expected, launched, strict=True):
        assert told == rows if rows is not None else isinstance(told[-1], str), numbers


def size(generator: random.Random) -> int:
    return generator.choice(
        [1, 2, 3, generator.randint(1, 70), generator.randint(1, 5000), 2 ** generator.randint(0, 20)]
    )


HAIRY = """
// workspace tmp: fp32 [max(M - N, 1), next_pow2(N)]
// launch first grid=(cdiv(N - M, 4), M % 7 + 1, 1) block=(min(N, 64, M + 1), 1, 1) shared=M // (N - 3) args=(x, tmp, N)
// launch second grid=(next_pow2(M), -(-M // 3)) block=(N * M, 2) shared=N * 2000 args=(tmp, y, M)
extern "C" __global__ void first(const float *x, float *tmp, int n) {}
extern "C" __global__ void second(float *tmp, float *y, int m) {}
"""


def test_faults_of_a_plan_are_said_before_anything_is_launched_wrongly(tmp_path: Path) -> None:
    plan = bind_source(HAIRY, find_problem("softmax"))
    text = write_kernel_file(drop_bodies(HAIRY), plan, "hairy")
    program = compile_program(tmp_path, f'#include "recording_runtime.h"\n{text}{write_main(plan)}')
    draws = [(m, n) for m in (1, 2, 3, 8, 40, 500) for n in (1, 2, 3, 4, 9, 200, 3000)]
    launched = run_draws(program, draws)
    faults = 0
    for numbers, told in zip(draws, launched, strict=True):
        rows = list_expected(plan, numbers)
        faults += rows is None
        assert told == rows if rows is not None else isinstance(told[-1], str), numbers
    assert 5 < faults < len(draws) - 5
    words = {str(told[-1]) for told in launched if isinstance(told[-1], str)}
    assert any(text.startswith("line 3: launch first, grid: given 0; expected 1 to 2147483647") for text in words)
    assert any("given a divisor of 0" in text for text in words)
    assert any("shared: given 400000; expected 0 to" in text for text in words)


@cache
def draw_expressions() -> tuple[str, ...]:
    generator = random.Random(3)
    return tuple(str(draw_expression(generator, 4)) for _ in range(150))


def draw_expression(generator: random.Random, depth: int) -> Expression:
    if depth == 0 or generator.random() < 0.2:
        return Expression(generator.choice(["M", "N", str(generator.randint(0, 300))]))
    head = generator.choice(["+", "-", "*", "//", "%", "cdiv", "next_pow2", "min", "max", "neg"])
    count = {"neg": 1, "next_pow2": 1}.get(head) or (generator.randint(2, 3) if head in ("min", "max") else 2)
    return Expression(head.replace("neg", "-"), tuple(draw_expression(generator, depth - 1) for _ in range(count)))


def test_expressions_have_the_value_in_cpp_that_the_plan_has(tmp_path: Path) -> None:
    texts = draw_expressions()
    rows = [f'  try {{ std::cout << {write_expression(text, {"M": "M", "N": "N"})} << "\\n"; }}'
            f' catch (const std::exception &) {{ std::cout << "none\\n"; }}' for text in texts]  # fmt: skip
    head = "#include <algorithm>\n#include <cstdint>\n#include <iostream>\n#include <stdexcept>\n"
    body = "\n".join(rows)
    main = f"int main() {{ int64_t M, N; while (std::cin >> M >> N) {{\n{body}\n}} }}"
    program = compile_program(tmp_path, f"{head}{FUNCTIONS}\n{main}")
    draws = [(1, 1), (2, 7), (13, 3), (64, 1000), (129, 31), (1000, 4096)]
    lines = "\n".join(f"{m} {n}" for m, n in draws)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    expected = [str(value) for m, n in draws for value in compute_all(texts, {"M": m, "N": n})]
    compared = [(a, b) for a, b in zip(done.stdout.split(), expected, strict=True) if b != "too large"]
    assert [a for a, _ in compared] == [b for _, b in compared]
    assert len({b for _, b in compared}) > 100
    assert "none" in expected


def compute_all(texts: Sequence[str], sizes: dict[str, int]) -> Iterator[object]:
    for text in texts:
        try:
            yield evaluate(text, sizes)
        except ExpressionError as error:
            yield "none" if "divisor" in error.expected else "too large"


def make_solved(name: str) -> Solved:
    return Solved(name, TASKS[name], read_plain(name), {"run": "the run"}, "")


def test_what_torch_calls_compiles_against_the_headers_of_torch_and_cuda(tmp_path: Path) -> None:
    headers = Path(torch.__file__).parent / "include"
    extension = write_torch_extension(make_solved("mean_variance"))
    assert (extension.language, extension.entry, list(extension.sources)) == (
        "cuda",
        "main.cpp::run",
        ["main.cpp", FILE],
    )
    (tmp_path / "main.cpp").write_text(extension.sources["main.cpp"])
    missing = tmp_path / "c10/cuda/impl/cuda_cmake_macros.h"  # which a build of torch without CUDA leaves out
    missing.parent.mkdir(parents=True)
    missing.write_text("")
    places = [headers, headers / "torch/csrc/api/include", HEADERS, sysconfig.get_path("include"), tmp_path]
    words = ["g++", "-std=c++17", "-w", "-fsyntax-only", *(f"-I{place}" for place in places)]
    done = subprocess.run(
        [*words, "-DTORCH_EXTENSION_NAME=x", "main.cpp"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("name", list(TASKS))
def test_every_plain_program_is_a_module_that_says_what_it_lacks_on_a_machine_without_a_gpu(name: str) -> None:
    module = write_torch_module(make_solved(name))
    assert (module.device, module.compiler) == ("cuda", "nvcc")
    code = compile(module.text, module.name, "exec")
    compile(module.reference, module.name, "exec")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="given no GPU that torch can use; expected one of NVIDIA"):
            exec(code, {"__name__": "any"})
