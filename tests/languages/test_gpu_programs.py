"""Verdicts on programs for GPUs: right ones pass, however they are written; each wrong one is refused where it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from languages.gpu_programs import GpuProgram, list_plain, list_strangers, list_wrong, skip_without
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome

LANGUAGES = ("cuda", "wgsl", "metal")
RIGHT = [program for language in LANGUAGES for program in (*list_plain(language), *list_strangers(language))]
WRONG = [program for language in LANGUAGES for program in list_wrong(language)]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


def mark_program(program: GpuProgram) -> Any:
    return pytest.param(program, id=f"{program.language}-{program.name}", marks=skip_without(program.language))


@pytest.mark.parametrize("program", [mark_program(program) for program in RIGHT])
def test_a_right_program_passes(pool: Pool, program: GpuProgram) -> None:
    verdict = pool.verify(program.task, program.source)
    assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"


@pytest.mark.parametrize("program", [mark_program(program) for program in WRONG])
def test_a_wrong_program_is_refused_where_it_goes_wrong(pool: Pool, program: GpuProgram) -> None:
    verdict = pool.verify(program.task, program.source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == program.stage, verdict.message
    assert any(program.words in str(error) for error in verdict.errors), verdict.message
