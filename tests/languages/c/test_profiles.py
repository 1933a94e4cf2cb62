"""Profilers that run other programs: each says of a plain kernel what is known of it, and confined."""

from __future__ import annotations

import re
import shutil

import pytest
from targets.native.programs import needs_compiler

from opsmith.profiling.cachegrind import CachegrindProfiler, find_tool
from opsmith.profiling.mca import McaProfiler
from opsmith.profiling.profiler import ProfileSubject
from opsmith.profiling.remarks import RemarksProfiler
from opsmith.suites import load_tasks

pytestmark = [needs_compiler]


@pytest.mark.skipif(find_tool() is None, reason="valgrind is not installed: Debian's package valgrind")
def test_cachegrind_counts_an_access_for_each_number_of_a_product() -> None:
    """The widest vectors of this processor may be those of AVX-512, which valgrind does not know."""
    [task] = load_tasks(("kernels/gemm_at",), "c")
    [report] = CachegrindProfiler().profile_program(ProfileSubject(task, task.impl or ""))
    sizes = {name: int(size) for name, size in re.findall(r"(\w)=(\d+)", report.body)}
    products = sizes["M"] * sizes["N"] * sizes["K"]
    accesses = [int(count) for count in re.findall(r"(\d+) accesses", report.body)]
    assert max(accesses) >= 2 * products
    assert "built for x86-64-v" in report.body


def test_a_loop_under_a_pragma_of_openmp_has_the_remarks_of_its_first_statement() -> None:
    """At the pragma's line stand the loops over the lanes of vectors, of which one adds in order."""
    [task] = load_tasks(("kernels/row_sum",), "c")
    loop = "        for (int64_t n = 0; n < N; n++) {"
    source = (task.impl or "").replace(loop, f"#pragma omp simd reduction(+ : sum)\n        // a comment\n{loop}")
    [report] = RemarksProfiler().profile_program(ProfileSubject(task, source))
    line = source.splitlines().index(loop) + 1
    assert f"line {line}, innermost, depth 2: {loop.strip()}\n  vectorised, " in report.body
    assert report.body.count("in-order reduction") == 1, "in the heading"


@pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed: Debian's package llvm")
@pytest.mark.parametrize("name", ["layer_norm", "int8_gemm", "rope"])
def test_mca_has_a_model_of_what_is_built_here(name: str) -> None:
    [task] = load_tasks((f"kernels/{name}",), "c")
    [report] = McaProfiler().profile_program(ProfileSubject(task, task.impl or ""))
    assert re.search(r"^  [\d.]+ cycles a round; at least [\d.]+$", report.body, re.MULTILINE)
