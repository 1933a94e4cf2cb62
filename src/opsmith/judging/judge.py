"""What judges candidates: anything with this one method, the pool of worker processes or a test in its own process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from opsmith.errors import TaskError
from opsmith.judging.plans import PlanAnswer
from opsmith.records import Experience, Level, Outcome, Task, Verdict
from opsmith.splits import Split

IMPORT = "import"  # the origin of a hand-written experience


class Judge(Protocol):
    """`opsmith.judging.pool.Pool` is one."""

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict: ...


@runtime_checkable
class Secretive(Protocol):
    """What a judge adds that draws hidden sizes itself: the pool of workers, and many machines' pools."""

    def with_secret(self, secret: str) -> Judge:
        """The same judge, for which hidden sizes come from this secret."""


@runtime_checkable
class Splitting(Protocol):
    """What a judge adds that asks a task's target for splits, in the same workers: authors' code runs there."""

    def plan(
        self, task: Task, question: str, split: Split | None = None, *, node: str = "", most: int = 8
    ) -> PlanAnswer:
        """As `Pool.plan`. It blocks. Raises UsageError, VerifierError, TargetError."""


@runtime_checkable
class Costing(Protocol):
    """What a judge adds that can run cost models too: `opsmith.judging.pool.Pool` again."""

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        """The figures. It blocks. Raises UsageError, VerifierError."""


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
    verdict = await judge.judge(solution.task, solution.source, Level.FULL)
    if not verdict.passed:
        problem = "could not be judged" if verdict.outcome is Outcome.UNJUDGED else "is not a solution"
        message = f"task {solution.task.id}: the program to import {problem}\n{verdict.message}"
        raise TaskError(message, verdict.errors)
    return Experience(solution.task, solution.source, solution.success_rate, -1, IMPORT)
