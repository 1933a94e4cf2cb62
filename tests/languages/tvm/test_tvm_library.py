"""A library of TVM's programs is installed and tested where there is neither TVM nor anything of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from export.installs import link_packages, run_python
from export.stores import RUN, Said, info, write_run

from languages.test_libraries import run_tests
from opsmith.export.library import export_library
from opsmith.judging.pool import Pool
from opsmith.suites import load_tasks
from opsmith_lab.bench.attacks import list_attacks, read_task


def test_programs_leave_as_c_that_holds_their_machine_code(tmp_path: Path) -> None:
    named = {one.path.stem: one for one in list_attacks(["tvm"], ["right"])}
    parallel = read_task(named["softmax__scratch_of_each_iteration"])
    tasks = load_tasks(["kernels/row_sum", "kernels/batched_gemm"], "tvm")
    said = {task.id: [Said(task.impl, True)] for task in tasks}
    said[parallel.id] = [Said(named["softmax__scratch_of_each_iteration"].source, True)]
    with write_run(tmp_path / "runs", said, [*tasks, parallel], info("tvm")) as store, Pool(1) as pool:
        found = export_library(store, RUN, tmp_path / "made" / "ops", None, pool)
    assert [operator.name for operator in found.operators] == ["batched_gemm", "row_sum", "softmax"], found.refused
    packages = link_packages(tmp_path / "packages", "torch", "pytest")
    assert run_tests(found.folder, packages) > 25
    absent = run_python("-c", "import tvm", cwd=tmp_path, packages=packages)
    assert "No module named 'tvm'" in absent.stderr
    assert (packages / "ops/csrc/row_sum.tvm").read_text() == tasks[0 if tasks[0].id == "row_sum" else 1].impl
    made = subprocess.run(["make", "-C", str(found.folder)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    exported = subprocess.run(
        [str(shutil.which("nm")), "-D", "--defined-only", str(found.folder / "ops/libops.so")],
        capture_output=True, text=True, check=True)  # fmt: skip
    assert {row.split()[-1] for row in exported.stdout.splitlines()} == {
        "ops_isa", "ops_row_sum", "ops_batched_gemm", "ops_softmax"}  # fmt: skip
