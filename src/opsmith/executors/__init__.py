"""Executors: samples are drawn and candidates judged on this machine, or on the machines of a Ray cluster.

An executor gives a run its model and its judge, and closes what it opened. What comes out of a run is the same with
each: a reply depends on its request alone, a verdict on its task and program, and all that is stored is stored by the
process that runs the loop. Nothing but this package knows that there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from opsmith.errors import UsageError
from opsmith.executors.local import LocalExecutor
from opsmith.judging.judge import Judge
from opsmith.judging.pool import Pool
from opsmith.measuring.orders import Measurer
from opsmith.models import ChatModel
from opsmith.models.roles import RoleModels
from opsmith.profiling.profiler import ProfileSource
from opsmith.records import Task
from opsmith.settings import Settings


class Executor(Protocol):
    """A context manager. To enter it raises UsageError when it cannot be had, or when it may not judge the tasks."""

    @property
    def judge(self) -> Judge:
        """Its verdicts; inside the context only."""

    @property
    def measurer(self) -> Measurer:
        """What times right programs; inside the context only. Raises UsageError where nothing does."""

    @property
    def profiler(self) -> ProfileSource:
        """What says why right programs are as fast as they are; inside the context only."""

    def make_models(self, own: ChatModel | None = None) -> RoleModels:
        """The models that the settings name; `own`: the run's own, where there is one already. Raises UsageError."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None: ...


def get_executor(settings: Settings, tasks: Sequence[Task], pool: Pool | None = None) -> Executor:
    """The executor that `settings.place` names, for a run on these tasks; opened by entering it.

    `pool`: workers of this machine that runs share.
    """
    if settings.place.executor == "ray":
        from opsmith.executors.on_ray import RayExecutor  # noqa: PLC0415  (an extra, and slow to import)

        return RayExecutor(settings, tasks)
    if settings.place.ray_address is not None:
        raise UsageError("--ray-address: given with the local executor; expected none; try: --executor ray beside it")
    return LocalExecutor(settings, tasks, pool)
