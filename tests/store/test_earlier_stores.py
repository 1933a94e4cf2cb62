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

import opsmith
from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.records import Task, Usage, Verdict
from opsmith.report.files import text_of
from opsmith.store import Store, schema
from opsmith.store.attempts import rows_of_run
from opsmith.targets.step import STEP

PACKED = sorted(FIXTURES.glob("*.sqlite.xz"))
SETTINGS = opsmith.Settings(samples=12, temperatures=(1.0,), seed=2, max_rounds=1, tasks=("attn_1", "gemm_2", "rope_1"))
TASKS = [opsmith.load_task(name) for name in SETTINGS.tasks]


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

    async def judge(self, task: Task, source: str) -> Verdict:
        return self.judge_once(task, source)


@pytest.fixture(params=PACKED, ids=lambda path: path.name.partition(".")[0])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The unpacked store."""
    file = tmp_path / "opsmith.sqlite"
    file.write_bytes(lzma.decompress(request.param.read_bytes()))
    return file


def read_tables(path: Path, columns: dict[str, list[str]] | None = None) -> dict[str, tuple[list[str], list[Any]]]:
    """All rows of all tables, in the columns given or in all."""
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables if columns is None else columns:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            names = names if columns is None else columns[table]
            quoted = ", ".join(f'"{name}"' for name in names)
            found[table] = (names, sorted(connection.execute(f"SELECT {quoted} FROM {table}"), key=repr))
    return found


def test_no_row_of_it_changes_when_it_is_opened(path: Path) -> None:
    before = read_tables(path)
    Store.open(path).close()
    after = read_tables(path, {table: names for table, (names, _) in before.items()})
    assert after["meta"] == (["name", "value"], [("schema", str(schema.VERSION))])
    assert {name for name in before if before[name] != after[name]} == {"meta", "alembic_version"}


def test_every_sample_of_it_is_read(path: Path) -> None:
    with Store.open(path) as store:
        runs = store.list_runs()
        assert {summary.info.target for summary in runs} == {"step"}
        for run in (summary.info.id for summary in runs):
            rows = list(rows_of_run(store, run))
            shown = store.read_details([row["sample"] for row in rows])
            assert len(rows) == store.sample_count(run) == len(shown) > 0
            assert all(detail.calls and detail.candidates for detail in shown.values())
            assert all(line.parent_sample is None for detail in shown.values() for line in detail.candidates)


def test_it_is_reported(path: Path) -> None:
    with Store.open(path) as store:
        runs = [summary.info.id for summary in store.list_runs()]
        samples = sum(map(store.sample_count, runs))
        assert len(text_of(store, runs, "csv").splitlines()) == samples + 1
        page = text_of(store, runs, "html")
        assert all(task.id in page for run in runs for task in store.read_tasks(run))


def test_its_unfinished_run_goes_on_and_ends_as_one_that_was_never_stopped(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path) as store, Store.open(tmp_path / "whole") as whole:
        [run] = [summary.info.id for summary in store.list_runs() if not summary.finished]
        calls = [call for row in store.list_samples(run) for call in store.find_sample(run, row.id).calls]
        replies = {call.seed: call.reply for call in calls}
        first, again, judge = Recorded(replies), Recorded(replies), InProcess()
        went_on = improve(TASKS, first, SETTINGS, store, judge=judge)
        monkeypatch.setattr(STEP, "verifier", store.read_info(run).versions["verifier"])  # which names the run
        uninterrupted = improve(TASKS, again, SETTINGS, whole, judge=judge)
        assert went_on.run == uninterrupted.run == run
        assert went_on.finished
        assert set(first.asked) == set(again.asked) - set(replies), "what was answered is not asked for again"
        assert set(replies) <= set(again.asked)
        assert contents(store, run) == contents(whole, run)
        problems = whole.fetch_rows(select(schema.task.c.id, schema.task.c.problem))
        assert {row.id: row.problem for row in problems} == {task.id: STEP.problem_digest(task) for task in TASKS}


def test_a_finished_run_of_an_earlier_verifier_is_left_as_it_is(path: Path) -> None:
    with Store.open(path) as store:
        judge = InProcess()
        [run] = [summary.info.id for summary in store.list_runs() if not summary.finished]
        first = improve(TASKS, Recorded({}), SETTINGS, store, judge=judge)
        second = improve(TASKS, Recorded({}), SETTINGS, store, judge=judge)
        assert first.run == run
        assert second.run != run, "today's verifier judges a run of its own"
        assert store.read_info(second.run).versions["verifier"] == STEP.verifier


def contents(store: Store, run: str) -> set[tuple[str, str]]:
    """The records of a run, less the names of its tasks' problems, which earlier versions did not note, and the words of
    its verdicts, which stay as they were said."""
    left_out = {"task": {"problem": None}, "verdict": {"body": None}}
    parsed = [(table, json.loads(body)) for table, body in store.read_contents(run)]
    return {(table, json.dumps(values | left_out.get(table, {}))) for table, values in parsed}
