"""How long verdicts on compiled candidates take: one that must be built, one whose build is kept, many of a problem.

Candidates are a task's own program with a constant of each one's own: equal in what they compute, different to every
cache, and each with hidden sizes of its own. So all of them pass, which takes longest. Builds go to an empty folder.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.records import Task, Verdict
from opsmith.targets import Built, Loaded, get_target
from opsmith.targets.lookup import LANGUAGES
from opsmith.targets.native.programs import CACHE_VARIABLE, open_cache
from opsmith.targets.protocols import Numbered


@dataclass(frozen=True)
class NativeTiming:
    """One task: medians and longest, each verdict by itself in a warm worker; all candidates of a batch together."""

    task: str
    first_ms: float
    first_longest_ms: float
    cached_ms: float
    cached_longest_ms: float
    verdicts: int  # of each of the two kinds
    batch_s: float | None  # None: no batch was asked for
    refused: int  # of all verdicts; expected: none


def measure_native(
    tasks: Sequence[Task],
    make_pool: Callable[[int], Pool],
    times: int,
    batch: int,
    workers: int,
    tell: Callable[[str], None],
) -> list[NativeTiming]:
    """A row for each task. Raises UsageError before anything is measured for one that cannot be."""
    for task in tasks:
        refuse_unmeasurable(task)
    rows = []
    for count, task in enumerate(tasks, 1):
        tell(f"{task.id}: verdicts are timed, {count} of {len(tasks)}")
        with keep_builds_apart():
            rows.append(_time_task(task, make_pool, times, batch, workers))
    return rows


def refuse_unmeasurable(task: Task) -> None:
    """Raises UsageError."""
    target = get_target(task.target)
    if not isinstance(target, Built) or not isinstance(target, Loaded) or not isinstance(target, Numbered):
        able = [name for name in LANGUAGES if isinstance(get_target(name), Numbered)]
        raise UsageError(
            f"bench native: {task.id} is a task of {task.target}; expected one of {', '.join(able)}; "
            f"try --target {able[0]}"
        )
    if not task.impl:
        raise UsageError(f"bench native: {task.id} has no program of its own; expected one to be timed")


def vary_program(task: Task, number: int) -> str:
    """The task's own program, made different from those of all other numbers."""
    target = get_target(task.target)
    assert isinstance(target, Numbered)
    return target.number_program(task.impl or "", number)


def summarise_native(rows: Sequence[NativeTiming]) -> dict[str, float | None]:
    """Over tasks: the median of medians, and the slowest task's."""
    batches = [row.batch_s for row in rows if row.batch_s is not None]
    return {
        "tasks": len(rows),
        "first_ms": statistics.median(row.first_ms for row in rows),
        "first_worst_ms": max(row.first_ms for row in rows),
        "cached_ms": statistics.median(row.cached_ms for row in rows),
        "cached_worst_ms": max(row.cached_ms for row in rows),
        "batch_s": statistics.median(batches) if batches else None,
        "batch_worst_s": max(batches) if batches else None,
        "refused": sum(row.refused for row in rows),
    }


def _time_task(task: Task, make_pool: Callable[[int], Pool], times: int, batch: int, workers: int) -> NativeTiming:
    sources = [vary_program(task, number) for number in range(times)]
    with make_pool(1) as pool:
        pool.verify(task, vary_program(task, times))  # data and expected values are prepared once per task
        first, verdicts = _time_verdicts(pool, task, sources)
        cached, again = _time_verdicts(pool, task, sources)
    seconds, batched = _time_batch(task, make_pool, times + 1, batch, workers) if batch else (None, [])
    refused = sum(not verdict.passed for verdict in (*verdicts, *again, *batched))
    return NativeTiming(task.id, *_describe_ms(first), *_describe_ms(cached), times, seconds, refused)


def _describe_ms(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and longest, in milliseconds."""
    return round(1e3 * statistics.median(seconds), 1), round(1e3 * max(seconds), 1)


def _time_verdicts(pool: Pool, task: Task, sources: Sequence[str]) -> tuple[list[float], list[Verdict]]:
    seconds, verdicts = [], []
    for source in sources:
        start = time.perf_counter()
        verdicts.append(pool.verify(task, source))
        seconds.append(time.perf_counter() - start)
    return seconds, verdicts


def _time_batch(
    task: Task, make_pool: Callable[[int], Pool], start: int, batch: int, workers: int
) -> tuple[float, list[Verdict]]:
    """Seconds for all of them together, once each worker has the data of the task."""
    sources = [vary_program(task, number) for number in range(start, start + workers + batch)]
    with make_pool(workers) as pool:
        pool.verify_all(task, sources[:workers])
        begin = time.perf_counter()
        verdicts = pool.verify_all(task, sources[workers:])
        return round(time.perf_counter() - begin, 2), verdicts


@contextmanager
def keep_builds_apart() -> Iterator[None]:
    """An empty folder for builds, which is gone afterwards: what is built to be timed pushes nothing out."""
    before = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
        os.environ[CACHE_VARIABLE] = folder
        open_cache.cache_clear()
        try:
            yield
        finally:
            os.environ.pop(CACHE_VARIABLE)
            if before is not None:
                os.environ[CACHE_VARIABLE] = before
            open_cache.cache_clear()
