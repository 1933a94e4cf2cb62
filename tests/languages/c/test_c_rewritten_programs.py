"""Programs that the tuner of C rewrites are right where the plain ones are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from opsmith.judging.pool import Pool
from opsmith.records import Task
from opsmith.suites import load_tasks
from opsmith_lab.c.tuning.moves import apply_move, list_moves
from opsmith_lab.drawn import write_problems

pytestmark = needs_compiler
ORDER = ("widen-halves", "select-extreme", "hoist-call", "hoist-division", "tile", "vector-math", "vectorise-all")
UNKNOWN_SEED = 7  # of problems that the tuner was not written for


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trust_tasks=True) as shared:
        yield shared


def rewrite_program(task: Task) -> list[str]:
    """The program after one move of each kind, as far as they apply, and after one that is drawn by the task's name."""
    assert task.impl is not None
    source = task.impl
    for name in ORDER:
        moves = [move for move in list_moves(source) if move.name == name]
        source = (apply_move(source, moves[-1]) or source) if moves else source
    moves = list_moves(task.impl)
    drawn = apply_move(task.impl, random.Random(task.id).choice(moves)) if moves else None
    return [text for text in (source, drawn) if text is not None and text != task.impl]


@pytest.mark.parametrize("task", load_tasks(("kernels",), "c"), ids=lambda task: task.id)
def test_a_rewritten_program_is_right(pool: Pool, task: Task) -> None:
    for source in rewrite_program(task):
        verdict = pool.verify(task, source)
        assert verdict.passed, f"{verdict.message}\n{source}"


def test_rewritten_programs_of_drawn_problems_are_right(pool: Pool, tmp_path: Path) -> None:
    for task in load_tasks([str(path) for path in write_problems(tmp_path, UNKNOWN_SEED)], "c"):
        assert task.impl is not None
        assert pool.verify(task, task.impl).passed, task.id
        for source in rewrite_program(task):
            verdict = pool.verify(task, source)
            assert verdict.passed, f"{task.id}: {verdict.message}\n{source}"
