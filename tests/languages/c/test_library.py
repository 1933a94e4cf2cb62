"""A library of C programs: installed with gcc alone, and its own tests pass; C calls the same shared object."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from export.installs import install_package, link_packages, run_python
from export.stores import RUN, Said, info, write_run
from speed_store import make_measurement
from targets.native.programs import needs_compiler

import opsmith
from opsmith.export.choice import choose_programs
from opsmith.export.library import export_library
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.measure import choose_timed_sets
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import Candidate, Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.native.flags import find_isa

SIZED, SMALL = "rms_norm", "small"  # the operator with two programs, and the shape set of the first
SUITES = Path(opsmith.__file__).parent / "suites"
THREADS = Path(__file__).parents[2] / "fixtures" / "kernels" / "threads"
KERNELS = ("rms_norm", "int8_gemm", "row_max_argmax", "layer_norm", "masked_attention", "top_k")
STEP = ("index_0", "etoe_3")

pytestmark = needs_compiler

TALLY = """
problem: tally
dims: {int: 6, kernel: 4, T: 5}
inputs:
  - {name: self, dtype: int8, shape: [int, 2*kernel], data: "randint(-9, 10)"}
  - {name: c, dtype: fp32, shape: [], data: normal}
scalars: {float: 2.5, by: 3}
outputs:
  - {name: y, dtype: fp32, shape: [T]}
  - {name: is_any, dtype: bool, shape: []}
reference: |
  # the first T places of the sum of every column, scaled */ \\
  def tally(self, c, float, by):
      sums = torch.zeros(T, dtype=c.dtype)
      columns = self.sum(0)[:T]
      sums[:columns.shape[0]] = columns.to(c.dtype) * float + c * by
      return sums, (self > 8).any()
shapes: {odd: {int: 3, kernel: 7, T: 2}}
"""
TALLY_C = """
#include <stdint.h>
void kernel(const int8_t *restrict self, const float *restrict c, float *restrict y, uint8_t *restrict is_any,
            int64_t int_, int64_t kernel_, int64_t T, double float_, int64_t by) {
  *is_any = 0;
  for (int64_t i = 0; i < int_ * 2 * kernel_; i++) *is_any |= self[i] > 8;
  for (int64_t t = 0; t < T; t++) {
    int64_t sum = 0;
    for (int64_t m = 0; m < int_ && t < 2 * kernel_; m++) sum += self[m * 2 * kernel_ + t];
    y[t] = t < 2 * kernel_ ? (float)((double)sum * float_ + (double)*c * (double)by) : 0.0f;
  }
}
"""
CALLER = r"""
#include <stdio.h>
#include "c_ops.h"
int main(void) {
  _Alignas(64) float x[6] = {1, 5, 2, 7, -1, 7}, value[2];
  int64_t position[2];
  c_ops_row_max_argmax(x, value, position, 2, 3);
  printf("%g %g %d %d %s\n", value[0], value[1], (int)position[0], (int)position[1], c_ops_isa);
}
"""
USE = """
import torch, c_ops
x = torch.tensor([[1.0, 5, 2], [7, -1, 7]])
print([part.tolist() for part in c_ops.row_max_argmax(x)], torch.ops.c_ops.row_max_argmax(x.t().contiguous().t())[1].tolist())
before = torch.get_num_threads()
print(c_ops.row_sum(torch.ones(3, 1000)).tolist(), torch.get_num_threads() == before)
ones = torch.ones(3, 4, dtype=torch.int8)
y, is_any = c_ops.tally(ones, torch.tensor(1.0, requires_grad=True), float=2.0, T=6)
print(y.tolist(), is_any, is_any.shape)
try:
    y.sum().backward()
except (RuntimeError, NotImplementedError) as error:
    print("autograd" in str(error))
for wrong in (x.double(), x[0], x.to("meta").to(torch.int8)):
    try:
        c_ops.row_max_argmax(wrong)
    except c_ops.OperatorError as error:
        print(error)
"""


@dataclass(frozen=True)
class Installed:
    folder: Path
    packages: Path


def list_solved() -> list[tuple[Task, Said]]:
    """Ten operators: bf16, fp16, int8, int64, two outputs, two threads, parameters, numbers and names of all kinds."""
    tasks = load_tasks([str(SUITES / "kernels" / f"{name}.yaml") for name in KERNELS] + list(STEP), "c")
    plain = {path.stem: path for suite in ("kernels", "step26") for path in (SUITES / suite / "plain").glob("*.c")}
    (threaded,) = load_tasks([str(SUITES / "kernels" / "row_sum.yaml")], "c", {"threads": "2"})
    sources = [(task, plain[task.id]) for task in tasks] + [(threaded, THREADS / "row_sum.c")]
    tally = get_target("c").read_task(TALLY, "tally")
    return [*((task, Said(path.read_text(), True)) for task, path in sources), (tally, Said(TALLY_C, True))]


def measure_twice(store: Store, task: Task) -> list[str]:
    """Two right programs of a task, the first the faster one at small sizes, the other at all others, never timed."""
    sizes = choose_timed_sets(task)
    samples = [row.id for row in store.list_samples(RUN, task.id)]
    programs = [detail.candidates[0].source or "" for detail in store.read_details(samples).values()]
    for number, program in enumerate(programs):
        for shape_set, place in sizes.items():
            ratio = (2.0 if shape_set == SMALL else 1.2, 1.1 if shape_set == SMALL else 3.0)[number]
            measured = make_measurement(Candidate(program).id, shape_set, 1.0, ratio, MeasuringGrade.FULL, Claim.FASTER)
            speed = StoredSpeed(task.id, samples[number], SpeedReport(replace(measured, sizes=place), None))
            store.put(speed_rows(RUN, speed)).result()
    return programs


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    """The library of a run in C, judged, written and installed."""
    folder, packages = tmp_path_factory.mktemp("made") / "c-ops", tmp_path_factory.mktemp("bare") / "packages"
    solved = list_solved()
    said = {task.id: [reply] for task, reply in solved}
    by_id = {task.id: task for task, _ in solved}
    plain = said[SIZED][0].program
    said[SIZED] = [Said(f"// for {sizes} sizes\n{plain}", True) for sizes in ("small", "all other")]
    store = write_run(folder.parent / "runs", said, [*by_id.values()], info("c"))
    with store, Pool(2) as pool:
        measure_twice(store, by_id[SIZED])
        choices = choose_programs(store, RUN, [*by_id.values()], "time")
        exported = export_library(store, RUN, folder, None, pool, choices)
        assert not exported.refused, [operator.verdict.message for operator in exported.refused]
        first = (folder / "manifest.json").read_bytes()
        (folder / "c_ops" / "libc_ops.so").touch()  # what make leaves
        export_library(store, RUN, folder, None, pool, choices)
        assert (folder / "manifest.json").read_bytes() == first
    link_packages(packages, "torch", "pytest")
    result = install_package(folder, packages)
    assert result.returncode == 0, result.stderr
    return Installed(folder, packages)


def test_a_library_says_what_its_programs_were_judged_with(installed: Installed) -> None:
    manifest = json.loads((installed.folder / "manifest.json").read_text())
    builds = {record["function"]: record["verdict_now"]["build"] for record in manifest["operators"]}
    assert set(builds) == {*KERNELS, *STEP, "row_sum", "tally"}
    assert all(f"-march={find_isa().name} -O3" in build for build in builds.values())
    assert [name for name, build in builds.items() if "-fopenmp " in build] == ["row_sum"]
    assert re.search(r"Judged as compiled by gcc [\d.]+", (installed.folder / "README.md").read_text())


def test_an_operator_whose_programs_are_fastest_at_other_sizes_each_has_both(installed: Installed) -> None:
    fronts = json.loads((installed.folder / "fronts.json").read_text())["operators"]
    assert list(fronts) == [SIZED]
    large, small = fronts[SIZED]["by_size"]
    assert [list(small["sizes"]), SMALL in large["sizes"]] == [[SMALL], False]
    assert large["program"] == fronts[SIZED]["program"] != small["program"]
    sources = [(installed.folder / "c_ops" / "csrc" / f"{SIZED}__{number}.c").read_text() for number in range(2)]
    assert [Candidate(source).id for source in sources] == [large["program"], small["program"]]
    readme = (installed.folder / "README.md").read_text()
    assert f"`{SIZED}` has 2 programs" in readme
    assert "A call takes the one of the nearest measured sizes" in readme


def test_an_installed_library_passes_its_own_tests(installed: Installed, tmp_path: Path) -> None:
    command = ("-m", "pytest", "-p", "no:cacheprovider", str(installed.folder))
    result = run_python(*command, cwd=tmp_path, packages=installed.packages)
    assert result.returncode == 0, result.stdout
    (passed,) = re.findall(r"(\d+) passed", result.stdout)
    assert int(passed) > 80


def test_operators_are_called_by_name_and_through_torch(installed: Installed, tmp_path: Path) -> None:
    result = run_python("-c", USE, cwd=tmp_path, packages=installed.packages)
    assert result.stdout.splitlines() == [
        "[[5.0, 7.0], [1, 0]] [1, 0]",
        "[1000.0, 1000.0, 1000.0] True",
        "[9.0, 9.0, 9.0, 9.0, 0.0, 0.0] tensor(False) torch.Size([])",
        "True",
        "row_max_argmax: x: given torch.float64; expected torch.float32",
        "row_max_argmax: x: given shape (3,); expected 2 axes, (M, N), each at least 1",
        "row_max_argmax: x: given torch.int8; expected torch.float32",
    ], result.stderr


def test_make_builds_a_library_for_c_and_a_wrong_program_fails_the_tests(installed: Installed, tmp_path: Path) -> None:
    folder = installed.folder
    subprocess.run(["make", "-C", str(folder), "-j2"], check=True, capture_output=True)
    (tmp_path / "caller.c").write_text(CALLER)
    library = folder / "c_ops" / "libc_ops.so"
    include = f"-I{folder}/c_ops/include"
    command = ["gcc", "-Wall", "-Wextra", "-pedantic", "-Werror", include, "caller.c", str(library), "-o", "caller"]
    subprocess.run(command, cwd=tmp_path, check=True)
    called = subprocess.run([str(tmp_path / "caller")], capture_output=True, text=True, check=True)
    assert called.stdout == f"5 7 1 0 {find_isa().name}\n"

    source = folder / "c_ops" / "csrc" / "row_max_argmax.c"
    source.write_text(source.read_text().replace("] > x[", "] < x["))
    subprocess.run(["make", "-C", str(folder)], check=True, capture_output=True)
    tests = ("-m", "pytest", "-p", "no:cacheprovider", "-x", "-k", "row_max_argmax", str(folder))
    assert run_python(*tests, cwd=folder, packages=installed.packages).returncode == 1


def test_only_operators_are_seen_outside_of_their_files(installed: Installed) -> None:
    library = installed.packages / "c_ops" / "libc_ops.so"
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in lines.stdout.splitlines()}
    assert names == {f"c_ops_{name}" for name in (*KERNELS, *STEP, "row_sum", "tally", "isa")}


def test_without_a_compiler_or_the_right_processor_it_says_so(installed: Installed, tmp_path: Path) -> None:
    result = install_package(installed.folder, tmp_path / "other", CC="absent-gcc")
    assert result.returncode != 0
    assert "c_ops: no compiler: given absent-gcc; expected gcc; try: apt install gcc" in result.stderr
    code = """
import torch, c_ops
from c_ops._runtime.targets.native.library import shared_object
shared_object.find_missing_features = lambda isa, features: ["avx512f"]
c_ops.row_sum(torch.ones(2, 2))
"""
    lacking = run_python("-c", code, cwd=tmp_path, packages=installed.packages)
    assert "given a processor without avx512f; expected them; try: ISA=" in lacking.stderr
