"""Verdicts on programs in CUDA: right ones pass, however they are written; each wrong one is refused where it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.cuda.cuda_fixtures import CudaProgram, list_plain, list_strangers, list_wrong, needs_cuda
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome

pytestmark = needs_cuda
PLAIN, STRANGERS, WRONG = list_plain(), list_strangers(), list_wrong()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


@pytest.mark.parametrize("program", [*PLAIN, *STRANGERS], ids=lambda program: program.name)
def test_a_right_program_passes(pool: Pool, program: CudaProgram) -> None:
    verdict = pool.verify(program.task, program.source)
    assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.name)
def test_a_wrong_program_is_refused_where_it_goes_wrong(pool: Pool, program: CudaProgram) -> None:
    verdict = pool.verify(program.task, program.source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == program.stage, verdict.message
    assert any(program.words in str(error) for error in verdict.errors), verdict.message
