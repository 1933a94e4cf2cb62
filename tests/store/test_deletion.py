"""A run leaves a store as a whole: nothing of it stays, and nothing that another run has goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, FaultyModel, InProcess, TinyModel
from sqlalchemy import func, select
from store.test_measurements import TIME

from opsmith.errors import ProviderError, StoreError
from opsmith.learn.loop import improve
from opsmith.records import Boundary, Candidate, Outcome, Stage, Verdict
from opsmith.settings import Settings
from opsmith.store import Store, schema, unsaved
from opsmith.store.deletion import referring_runs
from opsmith.store.measurements import Profile, profile_rows, speed_rows
from opsmith.store.rows import Judged, SampleKey, control_row, judged_rows

PASSED = Verdict(Candidate("a program").id, Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE)
SMALL = SETTINGS.replace(samples=3, max_rounds=1, repair=1)


@pytest.fixture
def store(where: Path | str) -> Iterator[Store]:
    with Store.open(where) as opened:
        yield opened


def run(store: Store, **changes: object) -> str:
    settings: Settings = SMALL.replace(**changes)
    return improve(TASKS[:2], TinyModel(), settings, store, judge=InProcess()).run


def failed_start(store: Store) -> str:
    """A run that its provider refused: there are its row, its tasks and its first prompts, and no sample."""
    refused = FaultyModel(dies_after=0, status=401)
    with pytest.raises(ProviderError):
        improve(TASKS[1:4], refused, SMALL.replace(seed=99), store, judge=InProcess())
    return store.list_runs()[-1].info.id


def counts(store: Store) -> dict[str, int]:
    return {
        name: store.fetch_rows(select(func.count()).select_from(table))[0][0]
        for name, table in schema.metadata.tables.items()
        if name not in {"meta", "alembic_version"}
    }


def test_a_store_whose_only_run_is_deleted_is_empty(store: Store) -> None:
    name = run(store)
    store.put([control_row(name, "pause")]).result()
    assert counts(store)["text"] > 20
    store.delete_run(name)
    assert store.list_runs() == []
    assert set(counts(store).values()) == {0}


def test_what_two_runs_share_stays_with_the_other(store: Store) -> None:
    one = run(store)
    before, alone = counts(store), store.read_contents(one)
    two = run(store, seed=7)
    samples = [row.id for row in store.list_samples(one)]
    shown = [store.find_sample(one, name) for name in samples]
    store.delete_run(two)
    assert counts(store) == before
    assert store.read_contents(one) == alone
    assert [store.find_sample(one, name) for name in samples] == shown


def test_a_run_of_a_failed_start_leaves_nothing_and_may_begin_again(store: Store) -> None:
    one = run(store)
    before = counts(store)
    failed = failed_start(store)
    assert (store.summarise_run(failed).samples, counts(store)["text"] > before["text"]) == (0, True)
    store.delete_run(failed)
    assert counts(store) == before
    assert [found.info.id for found in store.list_runs()] == [one]
    again = improve(TASKS[1:4], TinyModel(), SMALL.replace(seed=99), store, judge=InProcess())
    assert again.finished


def test_a_run_that_some_process_works_on_is_not_deleted(store: Store) -> None:
    name = run(store)
    before = counts(store)
    with store.lock(name), pytest.raises(StoreError, match="another process"):
        store.delete_run(name)
    assert counts(store) == before


def test_texts_stay_while_another_run_is_worked_on_and_go_with_the_next_deletion(store: Store) -> None:
    """Its process may have written a prompt and not yet the request that names it."""
    one, two = run(store), run(store, seed=7)
    texts = counts(store)["text"]
    with store.lock(one):
        store.delete_run(two)
        assert counts(store)["text"] == texts
    store.delete_run(one)
    assert set(counts(store).values()) == {0}


def test_an_error_half_way_deletes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    name = run(store)
    before = counts(store)
    monkeypatch.setattr("opsmith.store.deletion._delete_unnamed_texts", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        store.delete_run(name)
    assert counts(store) == before
    monkeypatch.undo()
    store.delete_run(name)
    assert store.list_runs() == []


def test_runs_that_begin_with_another_or_are_measured_by_it_are_found(store: Store) -> None:
    one = run(store, samples=12)
    assert referring_runs(store, one) == []
    beginning = one.rpartition("-")[0]
    three = run(store, selection="none", max_rounds=None, budget_from=beginning, samples=2, seed=7)
    four = improve([TASKS[0], TASKS[3]], TinyModel(), SMALL.replace(from_run=one), store, judge=InProcess())
    assert referring_runs(store, one) == sorted([three, four.run])
    assert referring_runs(store, three) == []
    assert four.run.startswith(beginning)
    assert referring_runs(store, four.run) == [], "the beginning of an id meant a run that was there already"


def test_replies_that_could_not_be_stored_go_with_their_run(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        name = run(store)
        query = select(schema.reply, schema.reply.c.run).where(schema.reply.c.run == name).limit(1)
        [row] = store.fetch_rows(query)
        values = {column.name: getattr(row, column.name) for column in schema.reply.columns}
        unsaved.Unsaved(store.path).keep_rows([(schema.reply, values)])
        assert [len(rows) for _, rows in unsaved.read_kept(store.path, name)] == [1]
        store.delete_run(name)
        assert list(unsaved.read_kept(store.path, name)) == []


def test_the_texts_of_another_runs_measurements_profiles_and_builds_stay(store: Store) -> None:
    one, two = run(store), run(store, seed=7)
    row = next(store.list_samples(one))
    profile = Profile(row.id, "x", "cpu", "remarks", "text/plain", "a text that only a profile names")
    built = Judged("a program", PASSED, build={"flags": "that only a verdict names"})
    key = SampleKey(one, 0, TASKS[0].id, 1.0, 99)
    rows = [*profile_rows(one, profile), *speed_rows(one, TIME), *judged_rows(key, [built])]
    store.put(rows).result()
    before = store.fetch_rows(select(schema.text.c.hash).order_by(schema.text.c.hash))
    third = run(store, seed=8)
    store.delete_run(third)
    assert store.fetch_rows(select(schema.text.c.hash).order_by(schema.text.c.hash)) == before
    assert (store.read_profiles(one), store.read_speeds(one)) == ([profile], [TIME])
    store.delete_run(two)
    store.delete_run(one)
    assert set(counts(store).values()) == {0}
