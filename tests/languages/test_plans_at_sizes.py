"""Launch plans in verdicts: what cannot be launched is refused at PARSE at stated sizes, at RUN without words at others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.records import FOR_PEOPLE, Outcome, Task
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.gpu.programs import GpuPrograms
from opsmith.targets.hidden import NOT_SHOWN
from opsmith.targets.lookup import LANGUAGES
from opsmith.targets.protocols import Equipped

GPU_LANGUAGES = [name for name in LANGUAGES if isinstance(get_target(name), GpuPrograms)]
LARGEST = 65  # of M, at the sizes that row_sum states


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as pool:
        yield pool


@pytest.fixture(params=GPU_LANGUAGES)
def task(request: pytest.FixtureRequest) -> Task:
    target = get_target(request.param)
    lack = target.explain_lack() if isinstance(target, Equipped) else ""
    if lack:
        pytest.skip(lack)
    return load_tasks(["kernels/row_sum"], request.param)[0]


def add_workspace(task: Task, shape: str) -> str:
    return f"// workspace unused: fp32 [{shape}]\n{task.impl}"


def test_a_size_that_the_task_states_is_told_at_parse(pool: Pool, task: Task) -> None:
    verdict = pool.verify(task, add_workspace(task, f"{LARGEST} - M"))
    assert (verdict.outcome, verdict.stage.name) == (Outcome.REFUSED, "PARSE")
    (error,) = verdict.errors
    assert (error.line, error.given) == (1, "`65 - M` = 0 at M = 65, N = 1")


def test_a_hidden_size_is_not_told(pool: Pool, task: Task) -> None:
    verdict = pool.verify(task, add_workspace(task, f"{LARGEST + 1} - M"))
    assert (verdict.outcome, verdict.stage.name) == (Outcome.REFUSED, "RUN")
    (error,) = verdict.errors
    assert (error.where, error.line) == (NOT_SHOWN, None)
    assert "M =" not in str(error)
    assert any("66 - M" in warning for warning in verdict.warnings if warning.startswith(FOR_PEOPLE))


def test_a_workspace_that_nobody_uses_does_no_harm(pool: Pool, task: Task) -> None:
    assert pool.verify(task, add_workspace(task, "M, N + 1")).passed
