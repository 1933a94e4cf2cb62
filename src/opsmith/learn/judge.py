"""What judges candidates: anything with this one method, the pool of worker processes or a test in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from opsmith.errors import TaskError
from opsmith.records import Experience, Outcome, Task, Verdict

IMPORT = "import"  # the origin of a hand-written experience


class Judge(Protocol):
    """`opsmith.judging.pool.Pool` is one."""

    async def judge(self, task: Task, source: str) -> Verdict: ...


@dataclass(frozen=True)
class Solution:
    """A hand-written program for a task. `success_rate` says how hard it is thought to be: 1.0 is easiest."""

    task: Task
    source: str
    success_rate: float = 1.0


async def import_experiences(solutions: Sequence[Solution], judge: Judge) -> list[Experience]:
    """Hand-written solutions as experiences to start from. Raises TaskError when the verifier does not pass one."""
    return [await _import_solution(solution, judge) for solution in solutions]


async def _import_solution(solution: Solution, judge: Judge) -> Experience:
    verdict = await judge.judge(solution.task, solution.source)
    if not verdict.passed:
        problem = "could not be judged" if verdict.outcome is Outcome.UNJUDGED else "is not a solution"
        message = f"task {solution.task.id}: the program to import {problem}\n{verdict.message}"
        raise TaskError(message, verdict.errors)
    return Experience(solution.task, solution.source, solution.success_rate, -1, IMPORT)
