"""Programs written from prompts and pages alone, by who had not seen the checks: wrong ones are refused, right ones pass.

A wrong one may pass what every candidate is tried at, and is then judged as what would be kept is.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.gpu_programs import FIXTURES, skip_without
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Level, Outcome
from opsmith.targets import TARGETS
from opsmith_lab.bench.attacks import RIGHT, Attack, read_attack, read_task

FOLDER = FIXTURES / "unseen_kernels"
ATTACKS = [
    pytest.param(attack, id=f"{language}-{attack.path.stem}", marks=skip_without(language))
    for language in ("metal", "tvm", "triton")
    if language in TARGETS
    for attack in map(read_attack, sorted((FOLDER / language).glob("*/*")))
]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_program_gets_the_verdict_that_it_deserves(pool: Pool, attack: Attack) -> None:
    task = read_task(attack)
    verdict = pool.verify(task, attack.source)
    if attack.kind == RIGHT:
        assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"
        return
    if verdict.passed:
        verdict = pool.verify(task, attack.source, level=Level.FULL)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert attack.stage in ("", verdict.stage.name), verdict.message
