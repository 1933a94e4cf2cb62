"""A store that an earlier version wrote opens, keeps every row, is read and reported, and its unfinished run goes on."""

import json
import lzma
import random
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from fingerprint import FIXTURES
from sqlalchemy import select
from store.fixture_store import UNFINISHED

import opsmith
from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve
from opsmith.measuring.intervals import Interval
from opsmith.models import Reply, Request
from opsmith.records import Level, Task, Usage, Verdict
from opsmith.report.files import text_of
from opsmith.store import Store, schema
from opsmith.store.attempts import rows_of_run
from opsmith.store.notes import Remarks
from opsmith.store.plans import CONTRACT
from opsmith.store.postgresql import PostgreSQL
from opsmith.store.sqlite import SQLite
from opsmith.store.verdicts import list_judgements
from opsmith.targets.step import STEP

PACKED = sorted(FIXTURES.glob("*.sqlite.xz"))
TASKS = [opsmith.load_task(name) for name in UNFINISHED.tasks]


class Recorded:
    """The model of the run, less its work: what the store holds it says again, for the rest it has a few programs."""

    name = "embedded"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, replies: dict[int | None, Reply]) -> None:
        self.replies = replies
        self.asked: list[int | None] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request.seed)
        program = random.Random(request.seed).choice(TASKS).impl or ""
        text = f"impl: |\n{indent(program, '  ')}"
        return self.replies.get(request.seed, Reply((text,), Usage(1, 100, 10), self.name, ("stop",)))

    async def close(self) -> None:
        """Nothing is open."""


class InProcess:
    """The verifier, in this process: the tasks are the package's own."""

    def __init__(self) -> None:
        self.judge_once = cache(verify)

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        return self.judge_once(task, source)


@pytest.fixture(params=PACKED, ids=lambda path: path.name.partition(".")[0])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The unpacked store."""
    file = tmp_path / "opsmith.sqlite"
    file.write_bytes(lzma.decompress(request.param.read_bytes()))
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def earlier(request: pytest.FixtureRequest, path: Path) -> Path | str:
    """Where the store lies: the file itself, or a database that was given the same rows."""
    if request.param == "sqlite":
        return path
    url: str = request.getfixturevalue("postgres").new_database()
    Store.open(url).close()
    Store.open(path).close()  # up to date
    source, copy = SQLite(path), PostgreSQL(url)
    with source.engine.connect() as reading, copy.open_transaction() as writing:
        for table in schema.metadata.tables.values():
            rows = [dict(row._mapping) for row in reading.execute(select(table))]
            if rows:
                writing.execute(copy.insert_new(table), rows)
    source.close()
    copy.close()
    return url


def read_tables(path: Path) -> dict[str, list[Any]]:
    """All rows of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}


def test_it_has_rows_of_every_kind_and_none_changes_when_it_is_opened(path: Path) -> None:
    before = read_tables(path)
    assert all(before.values())
    assert set(schema.metadata.tables) - set(before) == {"full_verdict", "known"}  # which later versions brought
    Store.open(path).close()
    after = read_tables(path)
    assert after.pop("full_verdict") == []
    for table in set(before) - {"meta", "alembic_version"}:
        width = len(before[table][0])
        assert [row[:width] for row in after[table]] == before[table], table
        assert {row[width:] for row in after[table]} in ({()}, {(None,)}), "a new column is empty"


def test_every_sample_of_it_is_read(earlier: Path | str) -> None:
    with Store.open(earlier) as store:
        runs = store.list_runs()
        assert {summary.info.target for summary in runs} == {"step"}
        for run in (summary.info.id for summary in runs):
            rows = list(rows_of_run(store, run))
            shown = store.read_details([row["sample"] for row in rows])
            assert len(rows) == store.sample_count(run) == len(shown) > 0
            assert all(detail.calls and detail.candidates for detail in shown.values())
            assert all(line.parent_sample is None for detail in shown.values() for line in detail.candidates)


def test_it_is_reported(earlier: Path | str) -> None:
    with Store.open(earlier) as store:
        runs = [summary.info.id for summary in store.list_runs()]
        samples = sum(map(store.sample_count, runs))
        assert len(text_of(store, runs, "csv").splitlines()) == samples + 1
        page = text_of(store, runs, "html")
        assert all(task.id in page for run in runs for task in store.read_tasks(run))


def test_its_unfinished_run_goes_on_and_ends_as_one_that_was_never_stopped(
    earlier: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(earlier) as store, Store.open(tmp_path / "whole") as whole:
        [run] = [summary.info.id for summary in store.list_runs() if not summary.finished]
        calls = [call for row in store.list_samples(run) for call in store.find_sample(run, row.id).calls]
        replies = {call.seed: call.reply for call in calls}
        first, again, judge = Recorded(replies), Recorded(replies), InProcess()
        monkeypatch.setattr(STEP, "verifier", store.read_info(run).versions["verifier"])  # which names the run
        went_on = improve(TASKS, first, UNFINISHED, store, judge=judge)
        uninterrupted = improve(TASKS, again, UNFINISHED, whole, judge=judge)
        assert went_on.run == uninterrupted.run == run
        assert went_on.finished
        assert set(first.asked) == set(again.asked) - set(replies), "what was answered is not asked for again"
        assert set(replies) <= set(again.asked)
        assert contents(store, run) == contents(whole, run)
        problems = whole.fetch_rows(select(schema.task.c.id, schema.task.c.problem))
        assert {row.id: row.problem for row in problems} == {task.id: STEP.problem_digest(task) for task in TASKS}


def test_what_is_said_and_measured_of_its_finished_run_is_read(earlier: Path | str) -> None:
    with Store.open(earlier) as store:
        [run] = [summary.info.id for summary in store.list_runs() if summary.finished]
        assert store.read_remarks(run) == Remarks(store.list_notes(run)[0], ("kept",))
        [speed], [profile] = store.read_speeds(run), store.read_profiles(run)
        assert (speed.sample, speed.task) == (profile.sample, profile.task)
        assert speed.report.measurement.time == Interval(812.5, 810.0, 815.25)
        assert [call.name for call in store.read_tool_calls([profile.sample])[profile.sample]] == ["check"]
        suggestion = store.read_suggestion(profile.sample)
        assert suggestion is not None
        assert suggestion.what == "fuse both maps"
        assert {entry.planner for entry in store.read_plans(run)} == {"static", CONTRACT}
        assert store.read_batches("embedded") == {"a": "batch-1"}
        later = [entry for entry in list_judgements(store, run, "later/1") if entry.after is not None]
        assert [entry.after for entry in later] == [entry.before for entry in later] != []


def contents(store: Store, run: str) -> set[tuple[str, str]]:
    """The records of a run, less the words of its verdicts, which stay as they were said."""
    parsed = [(table, json.loads(body)) for table, body in store.read_contents(run)]
    return {(table, json.dumps(values | ({"body": None} if table == "verdict" else {}))) for table, values in parsed}
