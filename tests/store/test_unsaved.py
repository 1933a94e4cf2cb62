"""Replies that a run received and could not store are kept, and stored by the next run; nothing else is."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from small_disk import SmallDisk, wait_for
from store.test_store import KEY, RUN, judged_rows, reply_rows

import opsmith.learn.attend
from opsmith.errors import StoreError
from opsmith.learn.loop import improve, improve_async
from opsmith.results.result import RunResult
from opsmith.store import Store, rows, schema, unsaved

BIG = rows.text_row("x" * 1_000_000)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "opsmith" / "unsaved"


def lose(path: Path, lost: list[rows.Row]) -> None:
    """A store whose disk is full, and which closes before there is room."""
    with Store.open(path) as store, store.wait_patiently():
        SmallDisk(store)
        waiting = store.put([BIG, *lost])
        wait_for(lambda: bool(store.trouble))
    assert isinstance(waiting.exception(0), StoreError)


def test_a_reply_that_could_not_be_stored_is_stored_by_the_next_run(tmp_path: Path, state: Path) -> None:
    lose(tmp_path / "a.sqlite", [*reply_rows(KEY), *judged_rows(KEY)])
    [file] = state.glob("*/*")
    assert file.stat().st_mode & 0o777 == 0o600
    with Store.open(tmp_path / "other.sqlite") as other:
        other.recover_rows(RUN.id)
        assert other.sample_count(RUN.id) == 0
    with Store.open(tmp_path / "a.sqlite") as store:
        store.recover_rows(RUN.id)
        assert store.sample_count(RUN.id) == 1
        assert store.judged_ids(RUN.id, 0) == set(), "verdicts are found again"
        assert len(store.unused_replies(RUN.id, 0)) == 1
    assert list(state.glob("*/*")) == []


def test_what_is_no_row_of_a_reply_is_left_out(tmp_path: Path, state: Path) -> None:
    lose(tmp_path / "a.sqlite", reply_rows(KEY))
    [file] = state.glob("*/*")
    good = file.read_text()
    odd = ['["run", {"id": "x"}]', '["reply", {"request": "x"}]', "[]", "nonsense", '["text", 3]', good[:40]]
    file.write_text("\n".join(odd) + "\n" + good)
    [(_, found)] = unsaved.read_kept(str(tmp_path / "a.sqlite"), RUN.id)
    assert list(unsaved.read_kept(str(tmp_path / "a.sqlite"), "another")) == []
    assert [path.suffix for path in state.glob("*/*")] == [".unread"], "what is no row is not thrown away"
    assert {table.name for table, _ in found} == {"text", "request", "reply"}
    assert next(values for table, values in found if table is schema.reply)["run"] == RUN.id


def test_a_reply_that_an_earlier_version_kept_is_stored_by_this_one(tmp_path: Path, state: Path) -> None:
    lose(tmp_path / "a.sqlite", reply_rows(KEY))
    [file] = state.glob("*/*")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    before = {"request": {"phase"}, "reply": set(), "text": set()}  # columns that came after version 3
    older = [[name, {key: values[key] for key in values if key not in before[name]}] for name, values in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in older))
    with Store.open(tmp_path / "a.sqlite") as store:
        store.recover_rows(RUN.id)
        assert store.sample_count(RUN.id) == 1
    assert list(state.glob("*/*")) == []


def test_where_they_can_be_kept_nowhere_their_number_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "opsmith.store"):
        lose(tmp_path / "a.sqlite", reply_rows(KEY))
    assert "1 replies are lost" in caplog.text


def test_a_run_that_gave_up_waiting_asks_for_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opsmith.learn.attend, "GRACE_S", 0.1)
    model = TinyModel()

    async def stopped(store: Store) -> RunResult:
        watch = threading.Thread(target=lambda: (wait_for(lambda: bool(store.trouble)), store.hurry(0.1)))
        watch.start()
        try:
            return await improve_async(TASKS, model, SETTINGS, store, InProcess())
        finally:
            watch.join()

    with Store.open(tmp_path / "small.sqlite") as store:
        SmallDisk(store, pages=80)
        with pytest.raises(StoreError, match="full; make room"):
            asyncio.run(stopped(store))
    before = len(model.asked)
    with Store.open(tmp_path / "small.sqlite") as store, Store.open(tmp_path / "other.sqlite") as other:
        result = improve(TASKS, model, SETTINGS, store, judge=InProcess())
        assert 0 < before < len(model.asked)
        assert len(model.asked) == store.sum_usage(result.run).requests
        whole = improve(TASKS, TinyModel(), SETTINGS, other, judge=InProcess())
        assert store.read_contents(result.run) == other.read_contents(whole.run)
