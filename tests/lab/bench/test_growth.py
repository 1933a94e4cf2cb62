"""A store that is filled for measurements holds what a run would leave; each question is asked of it, on both databases."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres import PostgresServer

from opsmith.errors import StoreError
from opsmith.models import Message
from opsmith.records import Candidate, Outcome
from opsmith.report.tables import open_console
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith_lab.bench.growth.measure import measure_growth
from opsmith_lab.bench.growth.questions import QUESTIONS, make_info, make_settings
from opsmith_lab.bench.growth.table import tabulate_growth
from opsmith_lab.filling import IN_FLIGHT, ROUNDS, SOLVED, Filled, each_of, fill_run

TASKS = load_tasks(())


@pytest.fixture(scope="module")
def filled(where_all: Path | str) -> Iterator[tuple[Store, Filled]]:
    with Store.open(where_all) as store:
        each = each_of(900, len(TASKS))
        yield store, fill_run(store, make_info(TASKS, make_settings(each, 0)), TASKS, each)


def test_a_filled_run_has_the_size_asked_for_and_everything_that_a_run_leaves(filled: tuple[Store, Filled]) -> None:
    store, found = filled
    assert 0.9 * 900 < found.samples < 1.1 * 900
    rows = list(store.list_samples(found.run))
    failed = [row for number in range(ROUNDS) for row in store.read_failures(found.run, number)]
    assert len(rows) + len(failed) == found.samples
    assert sum(row.outcome is None for row in rows) == IN_FLIGHT
    assert [len(solved or ()) for _, solved in store.read_rounds(found.run)] == [SOLVED, SOLVED, SOLVED, 0]
    assert store.read_rounds(found.run)[-1][1] is None
    assert sum(store.guardian_pairs(found.run).values()) > 0
    assert found.cells == tuple(dict.fromkeys((row.round, row.task, row.temperature) for row in rows))


def test_samples_to_ask_for_are_there_and_a_program_passes_only_as_a_program(filled: tuple[Store, Filled]) -> None:
    store, found = filled
    for key in (found.middle, found.last):
        shown = store.find_sample(found.run, key.id)
        final = next(item for item in shown.candidates if item.final)
        assert shown.row.outcome is final.verdict.outcome
        assert final.verdict.candidate == ("" if final.source is None else Candidate(final.source).id)
        assert all(isinstance(message, Message) for call in shown.calls for message in call.messages)
    passed = Counter(row.outcome for row in store.list_samples(found.run))[Outcome.PASSED]
    assert passed == sum(tally.right for tally in store.read_tallies(found.run)) > 0


def test_the_resume_that_is_timed_goes_on_with_the_run_that_was_filled(filled: tuple[Store, Filled]) -> None:
    store, found = filled
    before = store.read_rounds(found.run), len(store.read_failures(found.run, ROUNDS - 1))
    QUESTIONS["resume, to the first request"](store, found)
    assert [run.info.id for run in store.list_runs()] == [found.run]
    assert store.read_rounds(found.run) == before[0]
    left = [message for _, _, message in store.read_failures(found.run, ROUNDS - 1)[before[1] :]]
    assert "bench: no model" in left  # it came to a request
    assert left.count("bench: no verifier") <= IN_FLIGHT  # and judged the replies of the killed process first


def test_every_question_is_asked_of_postgresql_in_a_database_that_is_gone_afterwards(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.new_database()
    found = measure_growth(200, 1, 1, print, url)
    assert [asked.question for asked in found.questions] == list(QUESTIONS)
    assert all(asked.median > 0 for asked in found.questions)
    assert found.bytes > 10**6
    assert found.pages
    with psycopg.connect(url) as connection:
        names = {row[0] for row in connection.execute("SELECT datname FROM pg_database")}
    assert not {name for name in names if name.startswith("opsmith_bench")}
    open_console().print(*tabulate_growth([found]))
    printed = capsys.readouterr().out
    assert "resume, to the first request" in printed
    assert "canary-password" not in printed


def test_a_server_that_is_away_is_said() -> None:
    with pytest.raises(StoreError, match="the database server is away"):
        measure_growth(200, 1, 1, lambda _: None, "postgresql://nobody@127.0.0.1:9/none")
