"""Profilers that run other programs: each says of a plain kernel what is known of it, and confined."""

from __future__ import annotations

import re
import shutil

import pytest
from targets.native.programs import needs_compiler

from opsmith.profiling.cachegrind import CachegrindProfiler, find_tool
from opsmith.profiling.mca import McaProfiler
from opsmith.profiling.profiler import ProfileSubject
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


@pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed: Debian's package llvm")
@pytest.mark.parametrize("name", ["layer_norm", "int8_gemm", "rope"])
def test_mca_has_a_model_of_what_is_built_here(name: str) -> None:
    [task] = load_tasks((f"kernels/{name}",), "c")
    [report] = McaProfiler().profile_program(ProfileSubject(task, task.impl or ""))
    assert re.search(r"^  [\d.]+ cycles a round; at least [\d.]+$", report.body, re.MULTILINE)
