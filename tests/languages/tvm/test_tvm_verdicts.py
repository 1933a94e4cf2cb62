"""Verdicts on TVMScript: right programs pass, wrong ones are refused where they say, hostile ones before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.models.tokens import estimate_tokens
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.protocols import PROPOSER

TASKS = {task.id: task for task in load_tasks(["kernels"], "tvm")}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as shared:
        yield shared


@pytest.mark.parametrize("name", sorted(TASKS))
def test_the_plain_program_of_a_problem_passes(pool: Pool, name: str) -> None:
    verdict = pool.verify(TASKS[name], TASKS[name].impl)
    assert verdict.passed, verdict.message
    assert verdict.build.startswith("gcc"), verdict.build


def test_the_prompt_has_at_most_3000_tokens() -> None:
    assert estimate_tokens(get_target("tvm").base_prompt(PROPOSER)) <= 3000
