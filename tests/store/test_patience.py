"""What may pass is waited for, by who has patience; who has none gets the remedy at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clocks import lasts_at_most
from postgres import PostgresServer
from small_disk import SmallDisk, wait_for
from store.test_store import KEY, RUN, reply_rows

from opsmith.errors import StoreError
from opsmith.store import Store, rows

BIG = [rows.text_row("x" * 1_000_000)]


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    yield postgres
    if postgres.is_down:
        postgres.start()


def test_a_full_disk_is_waited_for_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "opsmith.store"), Store.open(tmp_path) as store, store.wait_patiently():
        disk = SmallDisk(store)
        waiting, later = store.put(BIG), store.put(reply_rows(KEY))
        wait_for(lambda: "disk is full" in store.trouble)
        time.sleep(1.2)
        assert not waiting.done()
        disk.make_room()
        waiting.result(60)
        later.result(60)
        assert store.trouble == ""
        assert store.sample_count(RUN.id) == 1
    said = [record.message for record in caplog.records]
    assert ["the run waits for room on the disk" in said[0], "goes on" in said[1], len(said)] == [True, True, 2]


def test_who_hurries_waits_a_little_and_then_hears_what_is_wrong(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, store.wait_patiently():
        SmallDisk(store)
        waiting = store.put(BIG)
        wait_for(lambda: bool(store.trouble))
        store.hurry(0.1)
        with pytest.raises(StoreError, match="full; make room"):
            waiting.result(60)


def test_closing_waits_for_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, store.wait_patiently():
        SmallDisk(store)
        waiting = store.put(BIG)
        wait_for(lambda: bool(store.trouble))
        with lasts_at_most(10.0, time.monotonic):  # a full disk is waited for without end
            store.close()
        assert isinstance(waiting.exception(0), StoreError)


def test_a_server_that_was_killed_is_waited_for_by_writer_and_reader(server: PostgresServer) -> None:
    with Store.open(server.new_database()) as store, store.wait_patiently(), store.lock(RUN.id):
        store.put(reply_rows(KEY)).result(60)
        server.kill()
        other = rows.SampleKey(RUN.id, 0, KEY.task, 0.7, 4)
        waiting = store.put(reply_rows(other))
        wait_for(lambda: bool(store.trouble))
        threading.Timer(0.5, server.start).start()
        assert store.sample_count(RUN.id) in (1, 2)
        waiting.result(60)
        assert store.sample_count(RUN.id) == 2
        assert store.is_held(RUN.id), "the new connection took the lock again"


def test_a_server_that_is_away_is_an_error_for_who_has_no_patience(server: PostgresServer) -> None:
    url = server.new_database()
    with Store.open(url) as store:
        server.kill()
        with pytest.raises(StoreError, match="server is away; start it"):
            store.list_runs()
        with pytest.raises(StoreError, match="server is away; start it") as refused:
            Store.open(url)
    assert "canary" not in str(refused.value)


def test_a_run_that_was_taken_over_is_written_by_its_new_holder_alone(server: PostgresServer) -> None:
    url = server.new_database()
    with Store.open(url) as store, Store.open(url) as other, store.wait_patiently(), store.lock(RUN.id):
        server.kill()
        server.start()
        with other.lock(RUN.id):
            with pytest.raises(StoreError, match="another process"):
                store.put(reply_rows(KEY)).result(60)
            other.put(reply_rows(KEY)).result(60)
        assert other.sample_count(RUN.id) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/store", "/nothing"), "does not exist; create it"),
        (("canary-password", "wrong"), "password authentication failed.*; check the user"),
        (("127.0.0.1", "no.such.host.invalid"), "check the host name"),
    ],
)
def test_what_waiting_cannot_help_is_said_at_once(postgres: PostgresServer, change, words: str) -> None:
    with pytest.raises(StoreError, match=words) as refused:
        Store.open(postgres.new_database().replace(*change))
    assert "canary" not in str(refused.value)
    assert "wrong" not in str(refused.value)


def test_rows_that_no_database_takes_end_the_writer_in_words_and_keep_nobody_waiting(where: Path | str) -> None:
    with Store.open(where) as store, store.wait_patiently():
        huge = [(table, values | {"seed": 2**70} if "seed" in values else values) for table, values in reply_rows(KEY)]
        with pytest.raises(StoreError):
            store.put(huge).result(60)
        with pytest.raises(StoreError):
            store.put(reply_rows(KEY)).result(60)


def test_a_connection_that_is_lost_before_it_has_its_locks_is_not_written_with(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(server.new_database()) as store, store.wait_patiently(), store.lock(RUN.id):
        database = store._database
        taken, tries = type(database)._take_lock, []

        def lost_once(self: object, connection: object, run: str) -> None:
            tries.append(run)
            if len(tries) == 1:
                server.kill()
                server.start()
            taken(self, connection, run)  # type: ignore[arg-type]

        monkeypatch.setattr(type(database), "_take_lock", lost_once)
        server.kill()
        server.start()
        store.put(reply_rows(KEY)).result(60)
        assert len(tries) >= 2
        assert store.is_held(RUN.id)
