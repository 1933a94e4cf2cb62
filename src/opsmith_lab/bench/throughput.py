"""How many verdicts a second a pool gives."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from opsmith.judging.pool import Pool
from opsmith.judging.timings import time_action
from opsmith.records import Task

PASSES = 6  # over all batches, until every worker has met every task


def measure_throughput(pool: Pool, batches: Sequence[tuple[Task, Sequence[str]]]) -> float:
    """Verdicts per second over all trials, with all workers of a pool at work, once each has the data of the tasks."""
    with ThreadPoolExecutor(len(batches)) as threads:
        seconds = time_action(lambda: list(threads.map(lambda batch: pool.verify_all(*batch), batches)), PASSES)
    return sum(len(sources) for _, sources in batches) / min(seconds)
