"""Right programs as files of KernelBench's kind: they agree with `Model` in a harness that knows torch alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from export.installs import link_packages, run_python
from export.stores import RUN, Said, info, write_run
from targets.native.programs import needs_compiler

import opsmith
from opsmith.errors import UsageError
from opsmith.export.torch_modules import ExportedModules, export_torch_modules
from opsmith.judging.pool import Pool
from opsmith.problems.files.reading import read_problem
from opsmith.records import Task
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target

pytestmark = needs_compiler
PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"
THREADS = Path(__file__).parents[2] / "fixtures" / "kernels" / "threads"
KERNELS = ("softmax", "row_max_argmax", "rms_norm", "rope", "int8_gemm", "max_pool2d", "cross_entropy")

LINEAR_PY = '''
from __future__ import annotations
import torch
import torch.nn as nn

batch_size = 64
features = 96


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Identity(), nn.Linear(width, width + 1))


class Model(nn.Module):
    """A head and a scale, which are drawn in this order."""

    def __init__(self, features, bias_shape):
        super(Model, self).__init__()
        self.head = Head(features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.register_buffer("scale", torch.rand(1))

    def forward(self, x, power):
        y = torch.relu(self.head.net(x) + self.bias) * self.scale
        return y, y.sum(-1) * power


def get_inputs():
    return [torch.randn(batch_size, features), 3]


def get_init_inputs():
    return [features, (features + 1,)]
'''
LINEAR = """
problem: linear_relu
dims: {batch_size: 8, features: 12, width: 13}
constraints: [width == features + 1]
inputs:
  - {name: x, dtype: fp32, shape: [batch_size, features], data: normal}
  - {name: weight, dtype: fp32, shape: [width, features], data: "uniform(-0.2, 0.2)"}
  - {name: bias_1, dtype: fp32, shape: [width], data: "uniform(-0.2, 0.2)"}
  - {name: bias_2, dtype: fp32, shape: [width], data: normal}
  - {name: scale, dtype: fp32, shape: [1], data: "uniform(0, 1)"}
scalars: {power: 3}
outputs:
  - {name: y, dtype: fp32, shape: [batch_size, width]}
  - {name: total, dtype: fp32, shape: [batch_size]}
reference: |
  def linear_relu(x, weight, bias_1, bias_2, scale, power):
      y = torch.relu(x @ weight.T + bias_1 + bias_2) * scale
      return y, y.sum(-1) * power
source:
  format: kernelbench
  file: level2/7_Linear_ReLU.py
  sha256: "{sha256}"
  licence: MIT
  text: |
{text}
  arguments: [x, power]
  weights: {weight: head.net.1.weight, bias_1: head.net.1.bias, bias_2: bias, scale: scale}
  sizes: {batch_size: 64, features: 96, width: 97}
"""
LINEAR_C = """
#include <math.h>
void kernel(const float *restrict x, const float *restrict weight, const float *restrict bias_1,
            const float *restrict bias_2, const float *restrict scale, float *restrict y, float *restrict total,
            int64_t batch_size, int64_t features, int64_t width, int64_t power) {
  for (int64_t b = 0; b < batch_size; b++) {
    double row = 0;
    for (int64_t w = 0; w < width; w++) {
      float sum = bias_1[w] + bias_2[w];
      for (int64_t f = 0; f < features; f++) sum += x[b * features + f] * weight[w * features + f];
      y[b * width + w] = fmaxf(sum, 0) * scale[0];
      row += y[b * width + w];
    }
    total[b] = (float)(row * (double)power);
  }
}
"""
POOL_PY = """
import torch
import torch.nn as nn
SIZE = 40
class Model(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return torch.nn.functional.avg_pool1d(x, 3, 2)
def get_inputs():
    return [torch.rand(4, 6, SIZE)]
def get_init_inputs():
    return []
"""
POOL = """
problem: pool
dims: {N: 2, C: 3, L: 16, L_out: 7}
constraints: [L_out == (L - 3)//2 + 1]
inputs: [{name: x, dtype: fp32, shape: [N, C, L], data: "uniform(0, 1)"}]
outputs: [{name: y, dtype: fp32, shape: [N, C, L_out]}]
reference: |
  def pool(x):
      return torch.nn.functional.avg_pool1d(x, 3, 2)
source:
  format: kernelbench
  file: 44_Average_Pooling_1D.py
  sha256: "{sha256}"
  text: |
{text}
  arguments: [x]
"""
POOL_C = """
void kernel(const float *restrict x, float *restrict y, int64_t N, int64_t C, int64_t L, int64_t L_out) {
  for (int64_t row = 0; row < N * C; row++)
    for (int64_t l = 0; l < L_out; l++)
      y[row * L_out + l] = (x[row * L + 2 * l] + x[row * L + 2 * l + 1] + x[row * L + 2 * l + 2]) / 3;
}
"""
USE = """
import torch
context = {"__name__": "any"}
exec(open("7_Linear_ReLU.py").read(), context)
torch.manual_seed(0)
module = context["ModelNew"](12, (13,))
for arguments in ((torch.randn(2, 12).double(), 3), (torch.randn(2, 11), 3), (torch.randn(12), 3), ([1.0], 3),
                  (torch.randn(2, 12, device="meta"), 3)):
    try:
        module(*arguments)
    except (TypeError, ValueError) as error:
        print(error)
strided = torch.randn(12, 5).t()
with torch.no_grad():
    print(torch.equal(module(strided, 2)[1], module(strided.contiguous(), 2)[1]), module(strided, 2)[0].shape)
"""


def write_problem(text: str, module: str) -> str:
    """A problem file with the text of a module as its source."""
    indented = "".join(f"    {line}\n" for line in module.strip("\n").splitlines())
    return text.replace("{text}", indented.rstrip("\n")).replace("{sha256}", "0" * 64)


@dataclass(frozen=True)
class Taken:
    """An exported folder, and packages with torch alone."""

    exported: ExportedModules
    packages: Path

    @property
    def folder(self) -> Path:
        return self.exported.folder

    def compare(self, folder: Path, *names: str) -> tuple[int, dict[str, dict[str, object]]]:
        """What the folder's harness says: the exit code, and each result by name."""
        command = (str(folder / "harness.py"), "--json", *names)
        result = run_python(*command, cwd=folder, packages=self.packages)
        assert "Traceback" not in result.stderr, result.stderr
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return result.returncode, {row["name"]: row for row in rows}


def list_solved() -> list[tuple[Task, str]]:
    tasks = load_tasks([f"kernels/{name}" for name in KERNELS], "c")
    (threaded,) = load_tasks(["kernels/row_sum"], "c", {"threads": "2", "flags": "-O2"})
    own = [
        (get_target("c").read_task(write_problem(LINEAR, LINEAR_PY), "linear_relu"), LINEAR_C),
        (get_target("c").read_task(write_problem(POOL, POOL_PY), "pool"), POOL_C),
    ]
    plain = [(task, (PLAIN / f"{task.id}.c").read_text()) for task in tasks]
    return [*plain, (threaded, (THREADS / "row_sum.c").read_text()), *own]


@pytest.fixture(scope="module")
def solved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that solved all of them, and `index_0` of STeP, which has no such form."""
    folder = tmp_path_factory.mktemp("store")
    step = load_tasks(["index_0"], "c")[0]
    solved = [*list_solved(), (step, (PLAIN.parents[1] / "step26" / "plain" / "index_0.c").read_text())]
    said = {task.id: [Said(source, True)] for task, source in solved}
    with write_run(folder, said, [task for task, _ in solved], info("c")):
        return folder


@pytest.fixture(scope="module")
def taken(solved_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    folder = tmp_path_factory.mktemp("made") / "modules"
    with Store.open(solved_run) as store, Pool(2) as pool:
        exported = export_torch_modules(store, RUN, folder, pool)
        first = (folder / "kernelbench.json").read_bytes()
        export_torch_modules(store, RUN, folder, pool)
        assert (folder / "kernelbench.json").read_bytes() == first
    packages = link_packages(tmp_path_factory.mktemp("bare") / "packages", "torch")
    return Taken(exported, packages)


def test_every_program_agrees_with_its_module_where_torch_is_alone(taken: Taken) -> None:
    assert not taken.exported.refused
    assert set(taken.exported.modules) == {*KERNELS, "row_sum", "7_Linear_ReLU", "44_Average_Pooling_1D"}
    code, results = taken.compare(taken.folder)
    wrong = {name: row["message"] for name, row in results.items() if row["message"] or row["trials"] != 5}
    assert (code, wrong) == (0, {})
    assert set(results) == set(taken.exported.modules)


def test_what_has_no_such_form_is_left_out_with_a_reason(taken: Taken) -> None:
    assert set(taken.exported.without_form) == {"index_0"}
    assert "expected a problem file" in taken.exported.without_form["index_0"]


def test_the_reference_is_the_source_as_it_was_and_its_licence_is_named(taken: Taken) -> None:
    (source,) = (read_problem(write_problem(LINEAR, LINEAR_PY)).problem.source,)
    assert source is not None
    assert (taken.folder / "reference" / "7_Linear_ReLU.py").read_text() == source.text
    head = (taken.folder / "7_Linear_ReLU.py").read_text().partition("import")[0]
    assert "level2/7_Linear_ReLU.py" in head
    assert "licence: MIT" in head
    assert "features = 96" in head, "sizes that it was not judged at are named"


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("softmax", "y[m * N + n] /= sum;", "y[m * N + n] /= sum * 2;", "other values"),
        ("7_Linear_ReLU", "self.head = Head(features)", "torch.rand(1); self.head = Head(features)", "other values"),
        ("7_Linear_ReLU", "return (y, total)", "return y", "1 outputs; expected 2"),
        ("44_Average_Pooling_1D", "(L - 3) // 2 + 1", "(L - 3) // 2", "shape (4, 6, 18); expected (4, 6, 19)"),
        ("rope", "void kernel(", "void kernel(wrong ", "the kernel does not compile"),
    ],
)
def test_what_is_wrong_fails_in_the_harness(
    taken: Taken, tmp_path: Path, name: str, before: str, after: str, words: str
) -> None:
    folder = shutil.copytree(taken.folder, tmp_path / "modules")
    text = (folder / f"{name}.py").read_text()
    assert before in text
    (folder / f"{name}.py").write_text(text.replace(before, after))
    code, results = taken.compare(folder, name)
    assert (code, results[name]["trials"]) == (1, 0)
    assert words in str(results[name]["message"])


def test_what_a_kernel_was_not_verified_for_is_refused(taken: Taken) -> None:
    result = run_python("-c", USE, cwd=taken.folder, packages=taken.packages)
    assert result.stdout.splitlines() == [
        "x: given torch.float64; expected torch.float32, which the kernel was verified for",
        "shapes: given some at which width == features + 1 does not hold, as it did wherever it was judged",
        "x: given shape (12,); expected 2 axes, each at least 1",
        "x: given list; expected a tensor",
        "x: given a tensor on meta; expected one on the CPU, which the kernel is for",
        "True torch.Size([5, 13])",
    ], result.stderr


def test_without_a_compiler_or_the_right_processor_a_file_says_so(taken: Taken) -> None:
    for variable, words in (("CC", "no compiler: given absent"), ("OPSMITH_ISA", "does not compile")):
        command = ["env", f"{variable}=absent", f"PYTHONPATH={taken.packages}", "python3", "-S", "softmax.py"]
        result = subprocess.run(command, cwd=taken.folder, capture_output=True, text=True, check=False)
        assert words in result.stderr


def test_a_folder_that_somebody_changed_is_not_replaced(taken: Taken, solved_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(taken.folder, tmp_path / "modules")
    (folder / "softmax.py").write_text("# mine\n")
    with Store.open(solved_run) as store, Pool(1) as pool, pytest.raises(UsageError, match="was changed since"):
        export_torch_modules(store, RUN, folder, pool)
