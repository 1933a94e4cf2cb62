"""Hostile texts in Metal end in a refusal, with the same words each time; right programs that look unusual pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.gpu_programs import needs_metal
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.targets.metal.dialect import rewrite_program, write_checked
from opsmith_lab.bench.attacks import RIGHT, Attack, list_attacks, read_task

pytestmark = needs_metal
SLOW = {  # in `bench attack`
    *("row_sum__constant_without_end", "row_sum__endless_at_even_sizes", "row_sum__macros_of_macros"),
    "row_sum__calls_itself",
}
ATTACKS = [attack for attack in list_attacks(["metal"], ["escapes", "bombs", RIGHT]) if attack.path.stem not in SLOW]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_ends_as_it_says(pool: Pool, attack: Attack) -> None:
    verdict = pool.verify(read_task(attack), attack.source)
    if attack.kind == RIGHT:
        assert verdict.passed, verdict.message
        return
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == attack.stage, verdict.message
    assert pool.verify(read_task(attack), attack.source).message == verdict.message


def test_no_file_is_named_to_the_compiler() -> None:
    """Whatever PARSE lets pass: headers are ours, and a program's own lines that ask for one are gone before."""
    source = '#include <metal_stdlib>\n  # include "/etc/passwd"\nkernel void f(device float *y) { }\n'
    assert "include" not in write_checked(source)
    assert "include" not in rewrite_program(source)
