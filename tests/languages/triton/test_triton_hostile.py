"""The library's programs in Triton end as they say: refusals, or a clean kill; the next program is judged as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.triton.test_triton_verdicts import ROW_SUM, TASKS
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith_lab.bench.attacks import RIGHT, Attack, list_attacks, read_task


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=3.0) as shared:
        yield shared


@pytest.mark.parametrize("attack", list(list_attacks(["triton"], ())), ids=lambda attack: attack.name)
def test_each_ends_as_it_says(pool: Pool, attack: Attack) -> None:
    verdict = pool.verify(read_task(attack), attack.source)
    if attack.kind == RIGHT:
        assert verdict.passed, verdict.message
        return
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert attack.stage in ("", verdict.stage.name), verdict.message


def test_a_right_program_passes_behind_them(pool: Pool) -> None:
    assert pool.verify(TASKS["row_sum"], ROW_SUM).passed
