"""The profilers of this machine: one program after another, in a thread, while the run's event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from opsmith.errors import OpsmithError
from opsmith.judging.pool import Pool
from opsmith.learn.profiler import Warn
from opsmith.profiling.choice import Profilers, choose_profilers
from opsmith.profiling.profiler import Profiler, ProfileSubject
from opsmith.records import ProfileReport, Task


class LocalProfiler:
    """Fits `ProfileSource`. `names`: auto, none, or those of profilers; `command`: of the user's own."""

    def __init__(self, pool: Pool, names: Sequence[str], command: str | None = None) -> None:
        self._pool = pool
        self._names = names
        self._command = command
        self._turn = asyncio.Lock()

    def explain_lacks(self, task: Task) -> tuple[str, ...]:
        return self._choose_profilers(task)[1]

    async def make_profiles(self, subject: ProfileSubject, warn: Warn) -> list[ProfileReport]:
        """In the order of the profilers."""
        reports = []
        async with self._turn:
            for profiler in self._choose_profilers(subject.task)[0]:
                try:
                    reports += await asyncio.to_thread(_run_profiler, profiler, subject)
                except (OpsmithError, OSError, ValueError) as error:
                    warn(f"task {subject.task.id}: profile {profiler.name}: {error or type(error).__name__}")
        return reports

    def _choose_profilers(self, task: Task) -> tuple[Profilers, tuple[str, ...]]:
        return choose_profilers(task, self._names, self._pool.cost, self._command)


def _run_profiler(profiler: Profiler, subject: ProfileSubject) -> list[ProfileReport]:
    return list(profiler.profile_program(subject))
