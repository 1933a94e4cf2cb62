"""Verdicts on programs in Triton: the plain one of each problem passes, planted mistakes are found at their line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.suites import load_tasks

TASKS = {task.id: task for task in load_tasks(["kernels"], "triton")}
ROW_SUM = """# launch row_sum grid=(M) meta=(BLOCK=256, num_warps=4) args=(x, y, N)
import triton
import triton.language as tl


@triton.jit
def row_sum(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * N + n, mask=n < N, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, 300.0, trial_deadline=120.0) as shared:
        yield shared


@pytest.mark.parametrize("name", sorted(TASKS))
def test_the_plain_program_of_a_problem_passes(pool: Pool, name: str) -> None:
    verdict = pool.verify(TASKS[name], TASKS[name].impl)
    assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"


@pytest.mark.parametrize(
    ("old", "new", "stage", "line", "words"),
    [
        ("mask=n < N, other=0.0", "mask=n <= N, other=0.0", "RUN", 12, "outside of x: entry "),
        ("mask=n < N, other=0.0", "mask=n < N", "MATCH", None, "y"),
        ("tl.store(y + row, ", "tl.store(y + row // 2, ", "RUN", 13, "writes too at line 13"),
        ("tl.store(y + row, ", "tl.store(x + row, ", "RUN", 13, "an input"),
        ("tl.store(y + row, ", "tl.store(y + row + tl.load(y + row).to(tl.int32), ", "RUN", 13, "outside of y"),
        ("tl.sum(total, axis=0)", "total", "COMPILE", 13, ""),
        ("dtype=tl.float32", "dtype=tl.float16", "COMPILE", 10, "variable"),
        ("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)", "COMPILE", 11, "power of 2"),
        ("start in range", "start in tl.range", "", None, ""),
        ("axis=0", "axis=1", "COMPILE", 13, "invalid axis"),
        ("args=(x, y, N)", "args=(x, y)", "PARSE", 1, "one for each of x, y, N"),
        ("BLOCK=256, ", "", "PARSE", 1, "no BLOCK"),
    ],
)
def test_a_planted_mistake_is_found_at_its_line_with_the_same_words(
    pool: Pool, old: str, new: str, stage: str, line: int | None, words: str
) -> None:
    source = ROW_SUM.replace(old, new)
    verdict = pool.verify(TASKS["row_sum"], source)
    if not stage:
        assert verdict.passed, verdict.message
        return
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == stage, verdict.message
    assert verdict.errors[0].line == line, verdict.message
    assert words in str(verdict.errors[0])
    assert pool.verify(TASKS["row_sum"], source).message == verdict.message
