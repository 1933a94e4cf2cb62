"""Verdicts on programs in C: right ones pass, however they are written; wrong ones are refused where they say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import THREADS, FixtureProgram, list_programs
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Level, Outcome

pytestmark = needs_compiler
PROGRAMS = list(list_programs())
REPEATS = 20


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_passes_or_is_refused_where_it_says(pool: Pool, program: FixtureProgram) -> None:
    verdict = pool.verify(program.task, program.source)
    if program.stage:
        if verdict.passed:
            verdict = pool.verify(program.task, program.source, Level.FULL)
        assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
        assert verdict.stage.name == program.stage, verdict.message
        assert verdict.errors
    else:
        assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"


@pytest.mark.parametrize(
    "program",
    [program for program in PROGRAMS if program.path.parent.name == THREADS],
    ids=lambda program: program.name,
)
def test_a_lost_update_of_threads_is_seen_in_19_of_20_verdicts(pool: Pool, program: FixtureProgram) -> None:
    passed = sum(pool.verify(program.task, program.source).passed for _ in range(REPEATS))
    assert passed <= 1 if program.stage else passed == REPEATS
