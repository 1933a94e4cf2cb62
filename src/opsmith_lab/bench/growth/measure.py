"""How long each question takes, and how much memory, over stores of several sizes.

Every size has a temporary store, filled through the real writer. Each question is asked in a process of its own that
has its modules loaded, so that its memory is its own and nothing is kept from another question; the store's file is in
the system's cache. Processor time is of the process that asks: what a database server takes is not in it.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith_lab.bench.growth.questions import QUESTIONS, make_info, make_settings
from opsmith_lab.bench.growth.temporary import make_temporary
from opsmith_lab.bench.pages import PageTiming, time_filled
from opsmith_lab.filling import Filled, each_of, fill_run

ENOUGH_S = 10.0  # after which a question is not asked again
MIB = 1024  # ru_maxrss counts KiB
Say = Callable[[str], None]


@dataclass(frozen=True)
class QuestionTiming:
    """One question; times in seconds."""

    question: str
    first: float
    median: float
    cpu: float  # the median of the processor's time
    memory_mib: float  # by how much the process grew


@dataclass(frozen=True)
class StoreGrowth:
    """A store of one size."""

    samples: int
    runs: int
    fill_s: float
    fill_cpu_s: float
    fill_memory_mib: float  # at the peak so far, of the process that filled it
    bytes: int
    questions: tuple[QuestionTiming, ...]
    pages: tuple[PageTiming, ...]  # of `opsmith ui`, while samples come

    @property
    def per_second(self) -> float:
        return self.samples / self.fill_s

    @property
    def bytes_per_sample(self) -> float:
        return self.bytes / self.samples


def measure_growth(samples: int, runs: int, times: int, say: Say, server: str | None = None) -> StoreGrowth:
    """Fill a store with about `samples` samples in so many runs, and ask each question of the last of them.

    `times`: how often each is asked. `server`: the URL of a PostgreSQL server; None: SQLite. Raises StoreError.
    """
    with make_temporary(server) as place:
        began, spent = time.perf_counter(), time.process_time()
        filled = fill_temporary(place.where, samples, runs, say)
        took, cpu = time.perf_counter() - began, time.process_time() - spent
        size, peak = place.settle_store(), _read_peak_mib()
        timings = tuple(time_apart(place.where, filled[-1], name, times, say) for name in QUESTIONS)
        with Store.open(place.where) as store:
            pages = tuple(time_filled(store, filled[-1], times, say))
    return StoreGrowth(sum(run.samples for run in filled), runs, took, cpu, peak, size, timings, pages)


def fill_temporary(where: str, samples: int, runs: int, say: Say) -> Sequence[Filled]:
    tasks = load_tasks(())
    each = each_of(samples // runs, len(tasks))
    say(f"writing {samples:,} samples")
    with Store.open(where) as store:
        return [fill_run(store, make_info(tasks, make_settings(each, seed)), tasks, each) for seed in range(runs)]


def time_apart(where: str, filled: Filled, name: str, times: int, say: Say) -> QuestionTiming:
    """One question, in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context) as process:
        timing = process.submit(time_question, where, filled, name, times).result()
    say(f"{name}: {timing.median:.3f} s")
    return timing


def time_question(where: str, filled: Filled, name: str, times: int) -> QuestionTiming:
    """One question, in this process."""
    with Store.open(where) as store:
        before, walls, cpus = _read_peak_mib(), list[float](), list[float]()
        while len(walls) < times and sum(walls) < ENOUGH_S:
            began, spent = time.perf_counter(), time.process_time()
            QUESTIONS[name](store, filled)
            walls.append(time.perf_counter() - began)
            cpus.append(time.process_time() - spent)
        return QuestionTiming(
            name, walls[0], statistics.median(walls), statistics.median(cpus), _read_peak_mib() - before
        )


def _read_peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
