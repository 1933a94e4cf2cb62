"""A crash or an access outside of an array comes with its line, and with the names and sizes that the task states."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import MISTAKES, FixtureProgram, load_c_task
from opsmith.judging.pool import Pool
from opsmith.records import FOR_PEOPLE
from opsmith.targets.hidden import NOT_SHOWN

pytestmark = needs_compiler
SANITIZED = "run with sanitizers"
HEAD = "#include <stdint.h>\nvoid kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {\n"
SUMS = "for (int64_t m = 0; m < M; m++) {\n y[m] = 0;\n for (int64_t n = 0; n < N; n++) y[m] += x[m * N + n];\n}\n"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.mark.parametrize(
    ("name", "stage", "line", "words"),
    [
        ("row_sum__overrun_store", "RUN", 14, "writes 4 bytes, right behind the end of output y"),
        ("row_sum__overrun", "MATCH", 9, "reads 4 bytes, right behind the end of input x"),
        ("masked_attention__crash", "RUN", 19, "through a null pointer"),
        ("gather__bound", "RUN", 9, "reads far outside of all arrays"),
    ],
)
def test_a_memory_error_is_told_with_its_line(pool: Pool, name: str, stage: str, line: int, words: str) -> None:
    program = FixtureProgram(MISTAKES / f"{name}.c")
    verdict = pool.verify(program.task, program.source)
    assert verdict.stage.name == stage, verdict.message
    assert verdict.errors[1].where == SANITIZED, verdict.message
    assert verdict.errors[1].line == line
    assert words in verdict.errors[1].given


def test_a_wrong_value_is_no_case_for_sanitizers(pool: Pool) -> None:
    verdict = pool.verify(load_c_task("kernels/row_sum", False), f"{HEAD}{SUMS} y[0] += 1;\n}}\n")
    assert {error.kind for error in verdict.errors} == {"DATA"}


def test_at_sizes_not_shown_people_alone_are_told_where(pool: Pool) -> None:
    """The line too may say a size: a program chooses where it fails."""
    source = f"{HEAD}{SUMS} if (M > 65 || N > 1000) y[M] = 0;\n}}\n"
    verdict = pool.verify(load_c_task("kernels/row_sum", False), source)
    assert [(error.where, error.line) for error in verdict.errors] == [(NOT_SHOWN, None)], verdict.message
    notes = [warning for warning in verdict.warnings if warning.startswith(FOR_PEOPLE)]
    assert any("writes 4 bytes, right behind the end of output y" in note for note in notes)
