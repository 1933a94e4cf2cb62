"""Programs in C that are right only while they are judged, and what is wrong by chance: refused before they are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import load_c_task
from opsmith.judging.pool import Pool
from opsmith.records import Level, Outcome
from opsmith_lab.bench.attacks import LIBRARY

pytestmark = needs_compiler
CHEAP, FULL = Level.CHEAP, Level.FULL


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, secret="kept programs") as shared:
        yield shared


@pytest.mark.parametrize(
    ("name", "level", "ends"),
    [
        ("detection/row_sum__keeps_finite_old_output", CHEAP, "MATCH"),
        ("detection/row_sum__heap_7b_or_fb_or_zero", CHEAP, "MATCH"),
        ("detection/row_sum__arrays_in_the_heap", FULL, "MATCH"),
        ("detection/row_sum__counts_calls", FULL, "MATCH"),
        ("detection/softmax__heap_looks_random", FULL, "MATCH"),
        ("detection/row_sum__environment", FULL, "COMPILE"),
        ("races/row_sum__atomic_read_write_of_halves", CHEAP, "MATCH"),
        ("races/row_max_argmax__c11_atomics_apart", CHEAP, "MATCH"),
        ("races/row_sum__more_threads_by_clause", CHEAP, "RUN"),
        ("right/row_sum__flag_by_atomics", FULL, "passes"),
        ("right/softmax__alignment_dependent_paths", FULL, "passes"),
    ],
)
def test_a_program_ends_at_the_level_that_tells(pool: Pool, name: str, level: Level, ends: str) -> None:
    source = (LIBRARY / "c" / f"{name}.c").read_text("utf-8")
    task = load_c_task(f"kernels/{name.partition('/')[2].partition('__')[0]}", "option: threads=2" in source)
    verdict = pool.verify(task, source, level)
    assert verdict.outcome is not Outcome.UNJUDGED, verdict.message
    assert ("passes" if verdict.passed else verdict.stage.name) == ends, verdict.message
    if level is FULL and ends == "MATCH":
        assert pool.verify(task, source).passed
