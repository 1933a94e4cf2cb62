"""Libraries of languages that are not compiled by gcc, installed where there is torch and what their programs run on:
their own tests pass there, and find a program that was spoiled. C has `c/test_library.py`, STeP `export/test_library`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from export.installs import install_package, link_packages, run_python
from export.stores import RUN, Said, info, write_run

from languages.gpu_programs import needs_cuda, needs_wgsl
from languages.remote.test_stand_in_gpu import compile_library
from opsmith.errors import UsageError
from opsmith.export.library import export_library
from opsmith.judging.pool import Pool
from opsmith.running import sandbox
from opsmith.scaffold.project import COMMAND, write_project
from opsmith.suites import load_tasks, read_task_file
from opsmith.suites.library import read_library
from opsmith.targets.gpu.nvidia.driver import LIBRARY_VARIABLE

ROW_SUM = """
#include <stdint.h>
const long row_sum_sizes[] = {8, 8, 8, 0};
int row_sum(void **parameters, const unsigned *launch) {
  const float *x = *(const float **)parameters[0];
  float *y = *(float **)parameters[1];
  int64_t columns = *(int64_t *)parameters[2];
  for (unsigned block = 0; block < launch[0]; block++) {
    double sum = 0;
    for (int64_t n = 0; n < columns; n++) sum += x[block * columns + n];
    y[block] = (float)sum;
  }
  return 0;
}
"""
Exporting = Callable[..., Path]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as made:
        yield made


@pytest.fixture
def export(tmp_path: Path, pool: Pool) -> Exporting:
    """`export(tasks, target)`: a library `ops` of their own programs."""

    def write(tasks: list, target: str) -> Path:
        said = {task.id: [Said(task.impl, True)] for task in tasks}
        with write_run(tmp_path / "runs", said, tasks, info(target)) as store:
            found = export_library(store, RUN, tmp_path / "made" / "ops", None, pool)
        assert [operator.name for operator in found.operators] == sorted(task.id for task in tasks), found.refused
        return found.folder

    return write


def test_programs_of_commands_are_run_by_them(export: Exporting, tmp_path: Path) -> None:
    if sandbox.missing():
        pytest.skip(sandbox.missing())
    write_project(tmp_path / "chip", kind=COMMAND)
    language = tmp_path / "chip" / "language.toml"
    tasks = [read_task_file(path, str(language)) for path in sorted((tmp_path / "chip/problems").glob("*.yaml"))]
    folder = export(tasks, str(language))
    packages = link_packages(tmp_path / "packages", "torch", "pytest")
    assert run_tests(folder, packages) == 25
    code = "import ops, torch; print(ops.row_sum(torch.ones(2, 3)).tolist(), ops._library.LIBRARY.cycles)"
    used = run_python("-c", code, cwd=tmp_path, packages=packages)
    assert re.fullmatch(r"\[3.0, 3.0\] \{'row_sum': \d+\}\n", used.stdout), used.stderr

    built = run_python("-m", "ops", cwd=tmp_path, packages=packages)
    assert built.stdout == "ops: relu_scale built\nops: rms_norm built\nops: row_sum built\n", built.stderr
    program = packages / "ops" / "programs" / "row_sum.vex"
    program.write_text(program.read_text().replace("vsum", "vsun"))
    (packages / "ops" / "build" / "row_sum" / "program.bin").unlink()
    (packages / "ops" / "build" / "row_sum" / "program.vex").unlink()
    (packages / "ops" / "build" / "row_sum").rmdir()
    refused = run_python("-c", code, cwd=tmp_path, packages=packages)
    assert "OperatorError: ops.row_sum: " in refused.stderr
    assert "unknown instruction 'vsun'" in refused.stderr


def test_a_toolchain_that_stays_where_it_is_is_named_by_a_variable(export: Exporting, tmp_path: Path) -> None:
    if sandbox.missing():
        pytest.skip(sandbox.missing())
    write_project(tmp_path / "chip", kind=COMMAND)
    language = tmp_path / "chip" / "language.toml"
    language.write_text(language.read_text() + "\n[library]\nfiles = []\n")
    folder = export([read_task_file(tmp_path / "chip/problems/row_sum.yaml", str(language))], str(language))
    assert not (folder / "ops" / "toolchain").exists()
    packages = link_packages(tmp_path / "packages", "torch", "pytest")
    assert install_package(folder, packages).returncode == 0
    code = "import os, ops, torch; os.environ.update({}); print(ops.row_sum(torch.ones(2, 3)).tolist())"
    lost = run_python("-c", code.format({}), cwd=tmp_path, packages=packages)
    assert "OperatorError: ops: given no variable OPS_TOOLS; expected the folder of the toolchain of vex" in lost.stderr
    named = run_python("-c", code.format({"OPS_TOOLS": str(tmp_path / "chip")}), cwd=tmp_path, packages=packages)
    assert named.stdout == "[3.0, 3.0]\n", named.stderr


@needs_wgsl
def test_kernels_in_wgsl_run_on_the_driver_here(export: Exporting, tmp_path: Path) -> None:
    folder = export(load_tasks(["row_sum", "softmax", "int8_gemm"], "wgsl"), "wgsl")
    packages = link_packages(tmp_path / "packages", "torch", "pytest", "wgpu")
    assert run_tests(folder, packages) > 25
    program = packages / "ops" / "programs" / "softmax.wgsl"
    program.write_text(re.sub(r"\bexp\(", "exp2(", program.read_text()))
    spoiled = run_python("-m", "pytest", "-p", "no:cacheprovider", str(folder), cwd=tmp_path, packages=packages)
    assert spoiled.returncode == 1
    assert "test_the_reference_agrees[softmax" in spoiled.stdout
    assert "[row_sum" not in spoiled.stdout


@needs_cuda
def test_kernels_in_cuda_are_launched_by_the_driver(
    export: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = export(load_tasks(["row_sum"], "cuda"), "cuda")
    packages = link_packages(tmp_path / "packages", "torch", "pytest")
    assert install_package(folder, packages).returncode == 0
    tests = ("-m", "pytest", "-p", "no:cacheprovider", "-rs", str(folder))
    monkeypatch.setenv(LIBRARY_VARIABLE, "libno_such_driver.so")
    without = run_python(*tests, cwd=tmp_path, packages=packages)
    assert "ops: no CUDA driver here" in without.stdout

    (tmp_path / "kernels.c").write_text(ROW_SUM)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "kernels.c", "-o", "kernels.so"], cwd=tmp_path, check=True)
    (packages / "ops/programs/row_sum.cubin").write_bytes(f"{tmp_path}/kernels.so".encode() + b"\0")
    monkeypatch.setenv(LIBRARY_VARIABLE, str(compile_library(tmp_path, "stand_in_driver.c")))
    tested = run_python(*tests, cwd=tmp_path, packages=packages)
    assert tested.returncode == 0, tested.stdout
    assert "skipped" not in tested.stdout


def test_what_was_written_can_be_read_again(export: Exporting, tmp_path: Path) -> None:
    tasks = load_tasks(["bmm_0", "norm_0"])
    folder = export(tasks, "step")
    library = read_library(folder)
    assert [(one.name, one.task.digest, one.source) for one in library.operators] == [
        (task.id, task.digest, task.impl) for task in tasks
    ]
    assert {one.written_by for one in library.operators} == {"model"}
    problem = folder / library.operators[0].record["problem_file"]
    problem.write_text(problem.read_text() + "\n# changed\n")
    with pytest.raises(UsageError, match=r"given another text than the manifest's"):
        read_library(folder)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 1}))
    with pytest.raises(UsageError, match=r"given version 1 of opsmith library; expected 2; try: export"):
        read_library(folder)


def run_tests(folder: Path, packages: Path) -> int:
    """How many tests of a library pass where nothing of ours is: all of them."""
    assert install_package(folder, packages).returncode == 0
    absent = run_python("-c", "import opsmith", cwd=folder.parent, packages=packages)
    assert "No module named 'opsmith'" in absent.stderr
    tested = run_python("-m", "pytest", "-p", "no:cacheprovider", str(folder), cwd=folder.parent, packages=packages)
    assert tested.returncode == 0, tested.stdout
    assert "skipped" not in tested.stdout
    match = re.search(r"(\d+) passed", tested.stdout)
    return int(match[1]) if match else tested.stdout.count(".")
