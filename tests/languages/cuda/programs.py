"""CUDA programs that the tests share: a right one for row_sum, and what is made of it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from opsmith.suites import task_files

PLAIN = task_files("kernels")[0].parent / "plain"
RIGHT = (PLAIN / "row_sum.cu").read_text("utf-8")
PLAN = "// launch row_sum grid=(M) block=(32) args=(x, y, M, N)"
HEAD = "__global__ void row_sum(const float *x, float *y, int64_t M, int64_t N) {"

HAS_PARSER = bool(find_spec("tree_sitter") and find_spec("tree_sitter_cuda"))
needs_parser = pytest.mark.skipif(not HAS_PARSER, reason="no parser of CUDA: pip install 'opsmith[cuda]'")


def write_kernel(body: str, before: str = "", plan: str = PLAN) -> str:
    """A kernel for row_sum with this body."""
    return f"{plan}\n{before}\n{HEAD}\n  {body}\n}}\n" if before else f"{plan}\n{HEAD}\n  {body}\n}}\n"
