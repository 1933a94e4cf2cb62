"""`kill -9` of the database server under a run: the run waits and says so, goes on by itself, and has lost nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from postgres import PASSWORD, PostgresServer

from chaos.books import contents
from chaos.conftest import SAMPLES, Undisturbed
from chaos.processes import Command, Commands, wait_until

STORE_FAILED = 4
INTERRUPTED = 130
WAITS = "the run waits for the database server"
GOES_ON = "the store can be used again"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresServer]:
    yield postgres
    if postgres.is_down:
        postgres.start()


def halfway(commands: Commands, whole: Undisturbed, url: str) -> Command:
    """A run that has had 30 replies and waits for the next ones."""
    whole.server.hold_after = 30
    run = commands.run(url, *whole.options)
    wait_until(lambda: len(whole.server.sent) == 30, why=lambda: run.said)
    return run


def test_a_run_waits_for_a_database_server_that_was_killed(
    commands: Commands, whole: Undisturbed, database: PostgresServer
) -> None:
    url = database.new_database()
    run = halfway(commands, whole, url)
    for _ in range(2):
        database.kill()
        whole.server.hold_after += 20
        run.wait_for(WAITS)
        time.sleep(1.0)
        assert run.alive
        database.start()
        wait_until(lambda: GOES_ON in run.said, why=lambda: run.said)
        wait_until(lambda: len(whole.server.sent) == whole.server.hold_after, why=lambda: run.said)
    whole.server.hold_after = None
    assert run.result()["run"] == whole.run
    print(run.said)
    assert PASSWORD not in run.said + run.printed
    assert Counter(whole.server.sent.values()) == {1: SAMPLES}
    assert contents(url, whole.run) == whole.contents


def test_ctrl_c_ends_the_wait_for_a_server_that_never_comes_back(
    commands: Commands, whole: Undisturbed, database: PostgresServer
) -> None:
    url = database.new_database()
    run = halfway(commands, whole, url)
    time.sleep(0.5)
    database.kill()
    whole.server.hold_after = None
    run.wait_for(WAITS)
    run.interrupt()
    assert run.code(seconds=40) in (STORE_FAILED, INTERRUPTED)
    assert "Traceback" not in run.said
    assert PASSWORD not in run.said
    database.start()
    assert commands.finish(url, *whole.options)["run"] == whole.run
    assert "could not be stored are in" in run.said
    assert Counter(whole.server.sent.values()) == {1: SAMPLES}, "what could not be stored is not asked for again"
    assert contents(url, whole.run) == whole.contents


def test_a_run_on_a_database_has_one_master(commands: Commands, whole: Undisturbed, database: PostgresServer) -> None:
    url = database.new_database()
    first = halfway(commands, whole, url)
    second = commands.run(url, *whole.options)
    assert second.code() == STORE_FAILED
    (message,) = second.said.strip().splitlines()
    assert "being worked on by another process" in message
    listed = commands.start("runs", "--store", url)
    assert listed.code() == 0, listed.said
    assert whole.run in listed.printed
    assert first.kill()
    whole.server.hold_after = None
    assert commands.finish(url, *whole.options)["run"] == whole.run, "the dead one holds it no more"
    assert Counter(whole.server.sent.values()) == {1: SAMPLES}
    assert contents(url, whole.run) == whole.contents
