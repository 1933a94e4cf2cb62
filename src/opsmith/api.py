"""What `import opsmith` offers: a task, its verdicts, and a whole run.

Verdicts are made by a pool of worker processes that starts with the first one and is closed at exit, because task
files hold code of their authors.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from opsmith.judging import verifier
from opsmith.judging.judge import Solution, import_experiences
from opsmith.judging.pool import Pool
from opsmith.records import Experience, Level, Task, Verdict
from opsmith.suites import adapt_task, load_task, load_tasks

if TYPE_CHECKING:
    from opsmith.learn.events import OnEvent
    from opsmith.models import ChatModel
    from opsmith.results.result import RunResult
    from opsmith.settings import Settings
    from opsmith.store import Store

__all__ = ["default_pool", "improve", "load_task", "verify", "verify_many", "verify_reply"]


def verify(task: Task, source: str, *, level: Level = Level.FULL, trust_tasks: bool = False) -> Verdict:
    """The verdict on one program. Raises UsageError where nothing isolates code of a task that is not bundled.

    `level`: how much is tried that the task does not state; `trust_tasks`: run it all the same.
    """
    return default_pool(trust_tasks).verify(task, source, level)


def verify_reply(task: Task, reply: str, *, level: Level = Level.FULL, trust_tasks: bool = False) -> Verdict:
    """The verdict on the program in a model's whole reply; see `verify`."""
    return verifier.verify_reply(task, reply, partial(default_pool(trust_tasks).verify, level=level))


def verify_many(
    task: Task, sources: Sequence[str], *, level: Level = Level.FULL, trust_tasks: bool = False
) -> list[Verdict]:
    """One verdict per program, in order; what several programs share is computed once. See `verify`."""
    return default_pool(trust_tasks).verify_all(task, sources, level)


def improve(
    tasks: Sequence[Task | str],
    model: ChatModel | str = "embedded",
    settings: Settings | None = None,
    store: Store | None = None,
    *,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
    solutions: Sequence[Solution] = (),
    pool: Pool | None = None,
) -> RunResult:
    """Run Algorithm 1 on tasks, or what their names mean, with a model or the one of that name; then make the solutions
    better for as many rounds as `settings.optimisation.optimise` says.

    Without a store the run is kept in a temporary one. `on_event` is told of everything that happens. Where the work is
    done, `settings.place.executor` says; in which language and with which options, `settings.target`
    and `settings.target_options`. `solutions`: programs to begin with, which are judged first; raises TaskError for one
    that is not right. `pool`: workers of this machine that several runs share (`open_workers`).
    """
    from opsmith.executors import get_executor  # noqa: PLC0415  (the store and pydantic: verdicts do without them)
    from opsmith.learn import loop  # noqa: PLC0415  (as above)
    from opsmith.learn.optimisation import choose_objective  # noqa: PLC0415  (as above)
    from opsmith.models.table import choose_analyst  # noqa: PLC0415  (as above)
    from opsmith.settings import Settings  # noqa: PLC0415

    settings = settings or Settings()
    adapted = [task for source in tasks for task in _ask_for(source, settings)]
    if isinstance(model, str):
        settings = settings.replace(model=model)
    settings = choose_objective(choose_analyst(settings), adapted)  # refused before anything is judged
    optimises = settings.optimisation.optimise > 0
    with get_executor(settings, adapted, pool) as executor:
        models = executor.make_models(None if isinstance(model, str) else model)
        started = asyncio.run(import_experiences(solutions, executor.judge)) if solutions else []
        return loop.improve(
            adapted,
            models,
            settings,
            store,
            judge=executor.judge,
            measurer=executor.measurer if settings.measuring.measure != "none" or optimises else None,
            profiler=executor.profiler if optimises else None,
            on_event=on_event,
            experiences=[*experiences, *started],
        )


def open_workers(settings: Settings) -> Pool:
    """Workers for runs with such settings; a context manager."""
    from opsmith.executors.local import open_pool  # noqa: PLC0415  (as above)

    return open_pool(settings.place)


def _ask_for(source: Task | str, settings: Settings) -> Sequence[Task]:
    """The tasks that a name means, or that task, in the language of the settings."""
    if isinstance(source, str):
        return load_tasks([source], settings.target, settings.target_options)
    return [adapt_task(source, settings.target, settings.target_options)]


@cache
def default_pool(trust_tasks: bool = False) -> Pool:
    """The process-wide pool: a worker per core."""
    pool = Pool(trust_tasks=trust_tasks)
    atexit.register(pool.close)
    return pool
