"""The executor of one machine: worker processes beside the run, and the model as the table makes it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from opsmith.judging.pool import Pool
from opsmith.models import ChatModel
from opsmith.models.roles import RoleModels
from opsmith.models.table import make_models
from opsmith.records import Task
from opsmith.settings import Place, Settings
from opsmith.targets import get_target

if TYPE_CHECKING:
    from opsmith.executors.local_measurer import LocalMeasurer
    from opsmith.executors.local_profiler import LocalProfiler


class LocalExecutor:
    """`place.workers` processes judge, and as many sample where the model computes.

    `pool`: those that judge, where runs share them; who opened it closes it.
    """

    def __init__(self, settings: Settings, tasks: Sequence[Task], pool: Pool | None = None) -> None:
        self._settings = settings
        self._tasks = tasks
        self._measurer: LocalMeasurer | None = None
        self._profiler: LocalProfiler | None = None
        self._pool = pool or open_pool(settings.place)
        self._is_shared = pool is not None

    @property
    def judge(self) -> Pool:
        return self._pool

    @property
    def measurer(self) -> LocalMeasurer:
        if self._measurer is None:
            from opsmith.executors.local_measurer import LocalMeasurer  # noqa: PLC0415 - imports numpy

            self._measurer = LocalMeasurer(self._pool)
        return self._measurer

    @property
    def profiler(self) -> LocalProfiler:
        from opsmith.executors.local_profiler import LocalProfiler  # noqa: PLC0415 - few runs need it

        if self._profiler is None:
            chosen = self._settings.optimisation
            self._profiler = LocalProfiler(self._pool.cost, chosen.profiles, chosen.profile_command, self.measurer)
        return self._profiler

    def make_models(self, own: ChatModel | None = None) -> RoleModels:
        return make_models(self._settings, get_target(self._tasks[0].target) if self._tasks else None, own)

    def __enter__(self) -> Self:
        self._pool.admit(self._tasks)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self._measurer is not None:
            self._measurer.close()
        if not self._is_shared:
            self._pool.close()


def open_pool(place: Place, workers: int | None = None) -> Pool:
    """Workers with the limits of a run. `workers`: another number of them."""
    return Pool(
        workers or place.workers,
        place.candidate_seconds,
        trial_deadline=place.trial_seconds,
        trust_tasks=place.trust_tasks,
    )
