"""The profilers of this machine: one program after another, in a thread, while the run's event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from opsmith.errors import OpsmithError, VerifierError
from opsmith.measuring.measure import choose_largest_set
from opsmith.measuring.objectives import is_timed
from opsmith.measuring.orders import Measurer, SpeedOrder
from opsmith.measuring.record import MeasuringGrade
from opsmith.profiling.choice import Profilers, choose_profilers
from opsmith.profiling.cost import CountFigures
from opsmith.profiling.profiler import Profiler, ProfileSubject, Warn
from opsmith.profiling.roofline import RooflineProfiler
from opsmith.records import ProfileReport, Task


class LocalProfiler:
    """Fits `ProfileSource`. `names`: auto, none, or those of profilers; `command`: of the user's own."""

    def __init__(
        self,
        count_figures: CountFigures,
        names: Sequence[str],
        command: str | None = None,
        measurer: Measurer | None = None,
    ) -> None:
        """`measurer`: of programs that nobody has timed yet; None: then there is no roofline of them."""
        self._count_figures = count_figures
        self._names = names
        self._command = command
        self._measurer = measurer
        self._turn = asyncio.Lock()

    def explain_lacks(self, task: Task) -> tuple[str, ...]:
        return self._choose_profilers(task)[1]

    async def make_profiles(self, subject: ProfileSubject, warn: Warn) -> list[ProfileReport]:
        """In the order of the profilers."""
        reports = []
        async with self._turn:
            profilers = self._choose_profilers(subject.task)[0]
            if not subject.speeds and any(isinstance(profiler, RooflineProfiler) for profiler in profilers):
                subject = await self._time_subject(subject, warn)
            for profiler in profilers:
                try:
                    reports += await asyncio.to_thread(_run_profiler, profiler, subject)
                except (OpsmithError, OSError, ValueError) as error:
                    warn(f"task {subject.task.id}: profile {profiler.name}: {error or type(error).__name__}")
        return reports

    async def _time_subject(self, subject: ProfileSubject, warn: Warn) -> ProfileSubject:
        """With a quick look at its speed, at the largest sizes that the task is timed at."""
        if self._measurer is None or not is_timed(subject.task):
            return subject
        sets = (choose_largest_set(subject.task),)
        order = SpeedOrder(subject.task, subject.source, MeasuringGrade.SCREEN, shape_sets=sets)
        try:
            return replace(subject, speeds=tuple([report async for report in self._measurer.measure(order)]))
        except VerifierError as error:
            warn(f"task {subject.task.id}: it was not timed for its profile: {error}")
            return subject

    def _choose_profilers(self, task: Task) -> tuple[Profilers, tuple[str, ...]]:
        return choose_profilers(task, self._names, self._count_figures, self._command)


def _run_profiler(profiler: Profiler, subject: ProfileSubject) -> list[ProfileReport]:
    return list(profiler.profile_program(subject))
