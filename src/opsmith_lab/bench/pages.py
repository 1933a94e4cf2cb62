"""How long pages take over a large store.

It is filled by the rows that a run makes, then asked over HTTP while samples go on coming, as they do while a run goes
on.
"""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from opsmith.records import Task
from opsmith.store import Store
from opsmith.store.pages import SamplePlace
from opsmith.store.rows import GUARDIAN, RunInfo
from opsmith.suites import load_tasks
from opsmith.ui.app import make_app
from opsmith.ui.guard import Access
from opsmith.ui.listening import open_listener
from opsmith.ui.query import write_place
from opsmith.ui.render import make_url
from opsmith.ui.serve import PageServer
from opsmith_lab.filling import ROUNDS, Filled, arriving_samples, each_of, fill_run

RUN = RunInfo("bench-s0-0", "0", "bench", False, "step", 0, {"agents": "agent", "guardian": "static"}, {})
PER_SECOND = 50  # samples that come while pages are asked for


@dataclass(frozen=True)
class PageTiming:
    """One page, in milliseconds; `first`: before anything of it was kept."""

    page: str
    first: float
    median: float
    worst: float  # but for the first


def time_pages(store: Store, samples: int, times: int, say: Callable[[str], None]) -> list[PageTiming]:
    """Fill a store that is empty with one run, and time every page `times` times."""
    tasks = load_tasks(())
    say(f"writing {samples:,} samples")
    return time_filled(store, fill_run(store, RUN, tasks, each_of(samples, len(tasks))), times, say)


def time_filled(store: Store, filled: Filled, times: int, say: Callable[[str], None]) -> list[PageTiming]:
    """Time every page of a run that was filled."""
    task = next(task for task in store.read_tasks(filled.run) if task.id == filled.last.task)
    with _serve_store(store, say) as address, _keep_writing(store, filled, task):
        return [_time_page(name, address + path, times) for name, path in _list_pages(filled)]


def _list_pages(filled: Filled) -> list[tuple[str, str]]:
    """Every kind of page; filters that pass many samples, few of them, and none."""
    run, middle, last = filled.run, filled.middle, filled.last
    place = write_place(SamplePlace(middle.round, middle.task, middle.temperature, middle.number))

    def list_of(**query: object) -> str:
        return make_url(run, "samples", **query)

    return [
        ("runs", "/"),
        ("run", make_url(run)),
        ("samples", list_of()),
        ("samples, in the middle", list_of(after=place)),
        ("samples, backwards", list_of(before=place)),
        ("samples that passed", list_of(outcome="passed")),
        ("samples of a task and stage", list_of(task=last.task, stage="AFFINE", after=place)),
        ("samples of the guardian", list_of(agent=GUARDIAN, round=ROUNDS - 1)),
        ("samples that nobody made", list_of(agent="nobody")),
        ("samples by id", list_of(id=middle.id[:3], outcome="passed")),
        ("samples by words", list_of(words="in no program or message")),
        ("sample", make_url(run, "samples", middle.id)),
        ("task", make_url(run, "tasks", middle.task)),
        ("attempts", make_url(run, "attempts", middle.task)),
        ("results, without their numbers", make_url(run, "results")),
    ]


def _time_page(name: str, address: str, times: int) -> PageTiming:
    milliseconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        with urllib.request.urlopen(address, timeout=60) as answer:
            answer.read()
        milliseconds.append((time.perf_counter() - began) * 1000)
    return PageTiming(
        name,
        *(round(value, 1) for value in (milliseconds[0], statistics.median(milliseconds[1:]), max(milliseconds[1:]))),
    )


@contextmanager
def _serve_store(store: Store, say: Callable[[str], None]) -> Iterator[str]:
    began = time.perf_counter()
    app, feed = make_app(store, Access())
    say(f"the server has read the run in {time.perf_counter() - began:.2f} s; now the pages")
    with open_listener("127.0.0.1", 0) as listener:
        server = PageServer(uvicorn.Config(app, log_level="warning", access_log=False), feed)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _keep_writing(store: Store, filled: Filled, task: Task) -> Iterator[None]:
    """Samples come to the last round."""
    ended = threading.Event()

    def write_batches() -> None:
        for batch in arriving_samples(filled, task):
            if ended.wait(1 / PER_SECOND):
                return
            store.put(batch)

    thread = threading.Thread(target=write_batches)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
