"""Several runs and readers on one store at once: each ends up with all its rows, and nobody waits for ever."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tiny_target import tiny_task

from opsmith.models import Message, Reply, Request
from opsmith.records import Usage
from opsmith.store import Row, Store, rows
from opsmith.store.rows import PROPOSER, RunInfo, SampleKey

TASK = tiny_task("sum_0", "x y +")
SAMPLES = 150
WRITERS = 4
WORDS = [f"prompt {number}" for number in range(12)]  # texts that all runs have in common


def run_info(name: str) -> RunInfo:
    return RunInfo(name, name, "tiny", False, "tiny", 0, {}, {})


def sample_rows(key: SampleKey, rng: random.Random) -> list[Row]:
    """A reply to a prompt of several common texts, in an order of its own."""
    messages = tuple(Message("user", words) for words in rng.sample(WORDS, 6))
    prompt, texts = rows.prompt_rows(messages)
    reply = Reply(("x",), Usage(1, 10, 1, 0, 0.1), "tiny", ("stop",))
    made = [*texts, *rows.reply_rows(key, PROPOSER, prompt, Request(messages, 1, 1.0, 64, 1), reply, 0.1)]
    rng.shuffle(made)
    return made


def write(where: Path | str, name: str, seed: int) -> None:
    rng = random.Random(seed)
    with Store.open(where) as store, store.lock(name):
        store.put(rows.run_rows(run_info(name), [TASK]))
        for number in range(SAMPLES):
            waiting = store.put(sample_rows(SampleKey(name, 0, TASK.id, 1.0, number), rng))
            if number % 20 == 0:
                waiting.result(60)


def test_runs_written_at_once_are_whole_and_a_reader_never_fails(where: Path | str) -> None:
    Store.open(where).close()
    names = [f"run-{number}" for number in range(WRITERS)]
    done, seen = threading.Event(), []

    def read() -> None:
        with Store.open(where) as store:
            while not done.is_set():
                seen.append(sum(summary.samples for summary in store.list_runs()))

    with ThreadPoolExecutor(WRITERS + 1) as threads:
        reader = threads.submit(read)
        try:
            list(threads.map(lambda pair: write(where, pair[1], pair[0]), enumerate(names)))
        finally:
            done.set()
        reader.result(60)
    with Store.open(where) as store:
        assert {summary.info.id: summary.samples for summary in store.list_runs()} == dict.fromkeys(names, SAMPLES)
    assert seen == sorted(seen)


def test_of_many_that_open_a_new_store_at_once_one_makes_the_tables(where: Path | str) -> None:
    start = threading.Barrier(6)

    def open_() -> int:
        start.wait()
        with Store.open(where) as store:
            return len(store.list_runs())

    with ThreadPoolExecutor(6) as threads:
        assert [found.result(60) for found in [threads.submit(open_) for _ in range(6)]] == [0] * 6


def test_every_commit_of_another_process_changes_the_version(where: Path | str) -> None:
    with Store.open(where) as watched, Store.open(where) as other:
        before = watched.version()
        for number in range(3):
            other.put([rows.text_row(f"text {number}")]).result(60)
            assert watched.version() != before
            before = watched.version()


def test_a_store_that_another_process_closes_keeps_what_this_one_has_open(tmp_path: Path) -> None:
    """The last one who closes a SQLite file takes its log away: it asks for a lock that every open connection holds."""
    with Store.open(tmp_path) as store:
        with ThreadPoolExecutor(2) as pool:  # each thread opens a connection of its own
            list(pool.map(lambda _: store.list_runs(), range(4)))
        store.list_runs()
        script = "import sys; from opsmith.store import Store; Store.open(sys.argv[1]).close()"
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
        assert Path(f"{store.path}-wal").exists()
