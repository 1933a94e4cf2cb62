"""Verdicts on TVMScript: right programs pass, wrong ones are refused where they say, hostile ones before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Boundary, Outcome
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.protocols import PROPOSER
from opsmith_lab.bench.attacks import RIGHT, Attack, list_attacks, read_task

TASKS = {task.id: task for task in load_tasks(["kernels"], "tvm", {"threads": "2"})}  # their loops are checked too
SLOW = {"never_ends", "counts_for_ever", "unrolls_a_billion", "unrolls_within_unrolled"}  # in `bench attack`
KINDS = ("races", "mistakes", "memory", "escapes", "bombs", RIGHT)
ATTACKS = [one for one in list_attacks(["tvm"], KINDS) if one.path.stem.removeprefix("row_sum__") not in SLOW]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as shared:
        yield shared


@pytest.mark.parametrize("name", sorted(TASKS))
def test_the_plain_program_of_a_problem_passes(pool: Pool, name: str) -> None:
    verdict = pool.verify(TASKS[name], TASKS[name].impl)
    assert verdict.passed, verdict.message
    assert verdict.build.startswith("tvm"), verdict.build


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_ends_as_it_says(pool: Pool, attack: Attack) -> None:
    """Wrong programs at their stage, where a line is said with the words that stand in their heads."""
    verdict = pool.verify(read_task(attack), attack.source)
    if attack.kind == RIGHT:
        assert verdict.passed, verdict.message
        return
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == attack.stage, verdict.message
    words = re.search(r"refused: [A-Z]+ ?(.*)", attack.source)
    assert words is not None
    assert words[1] in verdict.message


def test_the_prompt_has_at_most_3000_tokens() -> None:
    assert estimate_tokens(get_target("tvm").base_prompt(PROPOSER)) <= 3000
