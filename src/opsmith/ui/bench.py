"""How long do pages take over a large store? It is filled by the rows that a run makes, then asked over HTTP while
samples go on coming, as they do while a run goes on.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from opsmith.benchmarks import load_tasks
from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Task, Usage, Verdict
from opsmith.store import Row, Store, rows
from opsmith.store.pages import Place
from opsmith.store.rows import GUARDIAN, PROPOSER, Judged, RoundInfo, RunInfo, SampleKey
from opsmith.ui.app import make_app
from opsmith.ui.asked import write_place
from opsmith.ui.guard import Access
from opsmith.ui.render import run_url
from opsmith.ui.serve import Server, listening

RUN = RunInfo("bench-s0-0", "0", "bench", False, "step", 0, {"agents": "agent", "guardian": "static"}, {})
ROUNDS = 4
TEMPERATURES = (0.4, 0.7, 1.0)
PER_SECOND = 50  # samples that come while pages are asked for


@dataclass(frozen=True)
class Timed:
    """One page, in milliseconds; `first`: before anything of it was kept."""

    page: str
    first: float
    median: float
    worst: float  # but for the first


def time_pages(store: Store, samples: int, times: int, say: Callable[[str], None]) -> list[Timed]:
    """Fill a store that is empty with one run, and time every page `times` times."""
    tasks = load_tasks(())
    each = max(1, samples // (ROUNDS * len(tasks) * len(TEMPERATURES)))
    say(f"writing {each * ROUNDS * len(tasks) * len(TEMPERATURES):,} samples")
    keys = _fill(store, tasks, each)
    with _served(store, say) as address, _arriving(store, tasks, each):
        return [_timed(name, address + path, times) for name, path in _pages(keys)]


def _pages(keys: Sequence[SampleKey]) -> list[tuple[str, str]]:
    """Every kind of page; filters that pass many samples, few of them, and none."""
    middle, last = keys[len(keys) // 2], keys[-1]
    place = write_place(Place(middle.round, middle.task, middle.temperature, middle.number))

    def list_of(**query: object) -> str:
        return run_url(RUN.id, "samples", **query)

    return [
        ("runs", "/"),
        ("run", run_url(RUN.id)),
        ("samples", list_of()),
        ("samples, in the middle", list_of(after=place)),
        ("samples, backwards", list_of(before=place)),
        ("samples that passed", list_of(outcome="passed")),
        ("samples of a task and stage", list_of(task=last.task, stage="AFFINE", after=place)),
        ("samples of the guardian", list_of(agent=GUARDIAN, round=ROUNDS - 1)),
        ("samples that nobody made", list_of(agent="nobody")),
        ("samples by id", list_of(id=middle.id[:3], outcome="passed")),
        ("sample", run_url(RUN.id, "samples", middle.id)),
        ("task", run_url(RUN.id, "tasks", middle.task)),
        ("attempts", run_url(RUN.id, "attempts", middle.task)),
        ("results, without their numbers", run_url(RUN.id, "results")),
    ]


def _timed(name: str, address: str, times: int) -> Timed:
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        with urllib.request.urlopen(address, timeout=60) as answer:
            answer.read()
        taken.append((time.perf_counter() - began) * 1000)
    return Timed(name, *(round(value, 1) for value in (taken[0], statistics.median(taken[1:]), max(taken[1:]))))


@contextmanager
def _served(store: Store, say: Callable[[str], None]) -> Iterator[str]:
    began = time.perf_counter()
    app, feed = make_app(store, Access())
    say(f"the server has read the run in {time.perf_counter() - began:.2f} s; now the pages")
    with listening("127.0.0.1", 0) as listener:
        server = Server(uvicorn.Config(app, log_level="warning", access_log=False), feed)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _arriving(store: Store, tasks: Sequence[Task], number: int) -> Iterator[None]:
    """Samples come to the last round, from the number that the others have on."""
    ended = threading.Event()

    def write() -> None:
        prompt = rows.prompt_rows(_messages(tasks[0], ROUNDS - 1))[0]
        at = number
        while not ended.wait(1 / PER_SECOND):
            key = SampleKey(RUN.id, ROUNDS - 1, tasks[0].id, TEMPERATURES[0], at)
            store.put(_sample(key, prompt, random.Random(at)))
            at += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _fill(store: Store, tasks: Sequence[Task], each: int) -> list[SampleKey]:
    """`each` samples of every task at every temperature of every round; the last round goes on."""
    rng = random.Random(0)
    keys: list[SampleKey] = []
    store.put(rows.run_rows(RUN, tasks))
    for number in range(ROUNDS):
        names = tuple(task.id for task in tasks)
        store.put([rows.round_row(RUN.id, RoundInfo(number, number, "H", (), names, 2 * each * len(names)))])
        for task in tasks:
            prompt, texts = rows.prompt_rows(_messages(task, number))
            store.put(texts)
            made = [SampleKey(RUN.id, number, task.id, warm, at) for warm in TEMPERATURES for at in range(each)]
            for key in made:
                store.put(_sample(key, prompt, rng))
            keys += made
        store.flush()
        if number < ROUNDS - 1:
            store.put([rows.round_end_row(RUN.id, number, [])])
    return keys


def _messages(task: Task, number: int) -> tuple[Message, ...]:
    return Message("system", "what the language is " * 900), Message("user", f"round {number}\n{task.text}")


def _sample(key: SampleKey, prompt: str, rng: random.Random) -> list[Row]:
    """A reply with a verdict; what fails the resource check has a second one, of the guardian."""
    source = f"E{rng.randrange(200)} = step.Repeat(n=N).apply(E1)\n" * 8 + "return E2\n"
    reply = Reply((f"```yaml\nimpl: |\n  {source}```",), Usage(1, 5000, 120, 0, 0.001), "bench", ("stop",))
    stage = rng.choice(list(Stage))
    passed = stage is Stage.MATCH and rng.random() < 0.3
    found = Diagnostic("TYPE", "Repeat", f"rank {rng.randrange(50)}", "another rank", "something else")
    outcome = Outcome.PASSED if passed else Outcome.REFUSED
    verdict = Verdict(Candidate(source).id, stage, outcome, Boundary.CANDIDATE, () if passed else (found,), trials=4)
    judged = [Judged(source, verdict)]
    if stage is Stage.AFFINE:
        judged.append(Judged(source + "# copied\n", verdict, GUARDIAN, Candidate(source).id))
    asked = Request((), 1, key.temperature, 1024, 0)
    return [*rows.reply_rows(key, PROPOSER, prompt, asked, reply, 0.5), *rows.judged_rows(key, judged)]
