import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event, func, select
from tiny_target import tiny_task

import opsmith.store.sqlite
from opsmith.errors import StoreError, UsageError
from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Diagnostic, Experience, Outcome, Stage, Usage, Verdict
from opsmith.store import Row, Store, rows, schema
from opsmith.store.rows import FUNCTIONAL, GUARDIAN, PROPOSER, Judged, RoundInfo, RunInfo, SampleKey

TASK = tiny_task("sum_0", "x y +")
RUN = RunInfo(
    "tiny-s0-0123", "0123", "tiny", False, "tiny", 0, {"agents": "agent", "guardian": "llm"}, {"opsmith": "1"}
)
MESSAGES = (Message("system", "base prompt"), Message("user", "task"))
KEY = SampleKey(RUN.id, 0, TASK.id, 0.7, 3)
PASSED = Verdict("", Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE, trials=4, verifier="tiny-1")
REUSED = (Diagnostic("AFFINE", "name", "x twice", "once"),)


def reply_rows(key: SampleKey, agent: str = PROPOSER, text: str = "x y +", cost: float | None = 0.5) -> list[Row]:
    prompt, texts = rows.prompt_rows(MESSAGES)
    request = Request(MESSAGES, 1, key.temperature, 64, key.seed(0, agent))
    reply = Reply((text,), Usage(1, 100, 10, 20, cost), "tiny-2025", ("stop",))
    return [*texts, *rows.reply_rows(key, agent, prompt, request, reply, 0.1)]


def judged_rows(key: SampleKey) -> list[Row]:
    bad, good = Candidate("x x +"), Candidate("x y +")
    refused = Verdict(bad.id, Stage("AFFINE"), Outcome.REFUSED, Boundary.CANDIDATE, REUSED, verifier="tiny-1")
    return rows.judged_rows(key, [Judged(bad.source, refused), Judged(good.source, PASSED, GUARDIAN, bad.id)])


def whole_run() -> list[Row]:
    info = RoundInfo(0, 0, "none", (), (TASK.id,), 1)
    experience = Experience(TASK, "x y +", 1.0, 0, RUN.id)
    earned = rows.experience_rows(RUN.id, experience, KEY.id, False)
    ends = [rows.round_end_row(RUN.id, 0, [TASK.id]), rows.run_end_row(RUN.id, "all solved")]
    asked = reply_rows(KEY) + reply_rows(KEY, GUARDIAN, "impl: x y +")
    return [*rows.run_rows(RUN, [TASK]), rows.round_row(RUN.id, info), *asked, *judged_rows(KEY), *earned, *ends]


@pytest.fixture
def store(where: Path | str) -> Iterator[Store]:
    with Store.open(where) as opened:
        yield opened


def test_a_run_comes_back_as_it_was_written(store: Store) -> None:
    store.put(whole_run()).result()
    [summary] = store.list_runs()
    assert summary.info == RUN
    assert (summary.tasks, summary.solved, summary.rounds, summary.samples) == (1, 1, 1, 1)
    assert (summary.end, summary.finished) == ("all solved", True)
    assert summary.usage == Usage(2, 200, 20, 40, 1.0)
    assert store.sum_usage(RUN.id, GUARDIAN).requests == 1
    assert [kept.experience.task.text for kept in store.read_experiences(RUN.id)] == [TASK.text]
    assert store.read_rounds(RUN.id) == [(RoundInfo(0, 0, "none", (), (TASK.id,), 1), (TASK.id,))]
    assert store.guardian_pairs(RUN.id) == {(False, True): 1}


def test_a_sample_is_shown_with_all_that_belongs_to_it(store: Store) -> None:
    store.put([*whole_run(), rows.failure_row(KEY, Boundary.PROVIDER, "HTTP 500")]).result()
    [row] = store.list_samples(RUN.id)
    shown = store.find_sample(RUN.id, row.id[:6])
    assert shown.row == row
    assert (row.outcome, row.stage) == (Outcome.PASSED, Stage.MATCH)
    assert [call.agent for call in shown.calls] == [PROPOSER, GUARDIAN]
    assert shown.calls[0].messages == MESSAGES
    assert shown.calls[0].reply.texts == ("x y +",)
    assert [item.source for item in shown.candidates] == ["x x +", "x y +"]
    assert shown.candidates[1].parent == Candidate("x x +").id
    assert shown.candidates[0].verdict.errors == REUSED
    assert shown.failures == ("HTTP 500",)


def test_adding_what_is_there_changes_nothing(store: Store) -> None:
    store.put(whole_run()).result()
    before = store.read_contents(RUN.id)
    store.put(whole_run()).result()
    assert store.read_contents(RUN.id) == before
    assert store.sum_usage(RUN.id).requests == 2, "nothing is counted twice"


def test_contents_name_every_table_and_no_clock_time(store: Store) -> None:
    store.put([*whole_run(), rows.session_row(RUN.id, {}, {}, None)]).result()
    found = store.read_contents(RUN.id)
    expected = {
        "run",
        "task",
        "round",
        "round_end",
        "request",
        "reply",
        "candidate",
        "verdict",
        "experience",
        "run_end",
    }
    assert {table for table, _ in found} == expected
    assert not any({"at", "seconds"} & set(json.loads(body)) for _, body in found)


def test_an_unknown_price_is_not_a_sum(store: Store) -> None:
    store.put([*reply_rows(KEY), *reply_rows(SampleKey(RUN.id, 0, TASK.id, 0.7, 4), cost=None)]).result()
    assert store.sum_usage(RUN.id) == Usage(2, 200, 20, 40, None)


def test_a_reply_without_a_verdict_is_found_again(store: Store) -> None:
    other = SampleKey(RUN.id, 0, TASK.id, 0.7, 4)
    store.put([*reply_rows(KEY), *judged_rows(KEY), *reply_rows(other, text="later")]).result()
    assert store.judged_ids(RUN.id, 0) == {KEY.id}
    assert {name: reply.texts for name, reply in store.unused_replies(RUN.id, 0).items()} == {other.id: ("later",)}


def test_equal_texts_lie_in_the_store_once(store: Store) -> None:
    keys = [SampleKey(RUN.id, 0, TASK.id, 0.7, number) for number in range(50)]
    store.put([row for key in keys for row in reply_rows(key)]).result()
    query = select(func.count()).select_from(schema.text).where(schema.text.c.body == "base prompt")
    assert store.fetch_rows(query)[0][0] == 1


def test_many_threads_write_at_once(store: Store) -> None:
    keys = [SampleKey(RUN.id, 0, TASK.id, 0.7, number) for number in range(800)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: store.put(reply_rows(key)).result(), keys))
    assert store.sample_count(RUN.id) == 800


def test_what_was_put_is_there_after_closing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for number in range(300):
            store.put(reply_rows(SampleKey(RUN.id, 0, TASK.id, 0.7, number)))
    with pytest.raises(StoreError, match="closed"):
        store.flush()
    with Store.open(tmp_path) as store:
        assert store.sample_count(RUN.id) == 300


def test_a_sample_is_named_and_seeded_by_its_place_alone() -> None:
    assert SampleKey("r", 0, "t", 1, 0).id == SampleKey("r", 0, "t", 1.0, 0).id
    seeds = {SampleKey("r", r, "t", temp, n).seed(0, a) for r in (0, 1) for temp in (0.4, 1.0) for n in (0, 1)
             for a in (PROPOSER, GUARDIAN)}  # fmt: skip
    assert len(seeds) == 16
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert KEY.seed(1) != KEY.seed(0)


def test_samples_of_earlier_runs_keep_their_names_and_seeds() -> None:
    key = SampleKey("tiny-s0-0123", 2, "sum_0", 0.7, 3)
    assert (key.id, key.request_id(GUARDIAN)) == (
        "52439f0079b77483e8656450d1342b8e",
        "dd7d7cf379a43f9c6403a50b851c4bb2",
    )
    seeds = [key.seed(0), key.seed(5, GUARDIAN), key.seed(5, "repair-1")]
    assert seeds == [8195544099268212331, 2100941454567185350, 2053953807425069406]


def test_another_language_or_phase_is_another_sample() -> None:
    choices = [
        ("", FUNCTIONAL),
        ("c", FUNCTIONAL),
        ("", "optimisation"),
        ("c", "optimisation"),
        ("optimisation", FUNCTIONAL),
    ]
    keys = [SampleKey("r", 0, "t", 1.0, 0, target, phase) for target, phase in choices]
    assert len({key.id for key in keys}) == len(keys)
    assert len({key.seed(0, agent) for key in keys for agent in (PROPOSER, GUARDIAN, "c")}) == 3 * len(keys)


def test_a_candidate_may_have_its_parent_in_another_sample(store: Store) -> None:
    later = SampleKey(RUN.id, 1, TASK.id, 0.7, 0, phase="optimisation")
    faster = Candidate("y x +")
    build = {"flags": ["-O3"], "isa": "avx2", "compiler": "gcc 12.2"}
    verdict = replace(PASSED, candidate=faster.id)
    made = Judged(faster.source, verdict, PROPOSER, Candidate("x y +").id, KEY.id, "cpu", build)
    store.put([*whole_run(), *reply_rows(later, text="y x +"), *rows.judged_rows(later, [made])]).result()
    [shown] = store.find_sample(RUN.id, later.id).candidates
    assert (shown.parent, shown.parent_sample) == (Candidate("x y +").id, KEY.id)
    assert all(line.parent_sample is None for line in store.find_sample(RUN.id, KEY.id).candidates)
    assert store.guardian_pairs(RUN.id) == {(False, True): 1}, "it is no repair"
    [row] = store.fetch_rows(select(schema.verdict).where(schema.verdict.c.sample == later.id))
    assert (row.device, json.loads(store.read_text(row.build))) == ("cpu", build)
    phases = store.fetch_rows(select(schema.request.c.phase).where(schema.request.c.round == 1))
    assert [row.phase for row in phases] == ["optimisation"]


def test_unknown_runs_and_samples_are_answered_with_what_exists(store: Store) -> None:
    with pytest.raises(UsageError, match="known: none"):
        store.find_run("x")
    store.put(whole_run()).result()
    assert store.find_run("tiny-s0") == RUN.id
    with pytest.raises(UsageError, match=f"known: {RUN.id}"):
        store.summarise_run("other")
    with pytest.raises(UsageError, match="no sample"):
        store.find_sample(RUN.id, "zz")


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.sqlite"
    text.write_text("these are notes, and more than sixteen bytes of them")
    with pytest.raises(StoreError, match="not an opsmith store"):
        Store.open(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    with pytest.raises(StoreError, match="another program"):
        Store.open(other)


def test_a_store_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    file = tmp_path / opsmith.store.FILE
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    before = file.read_bytes()
    with pytest.raises(StoreError, match="schema 99"):
        Store.open(tmp_path)
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"store .*file/out"):
        Store.open(tmp_path / "file" / "out")


def test_a_locked_store_fails_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opsmith.store.sqlite, "WAIT_S", 0.1)
    with Store.open(tmp_path) as store:
        other = sqlite3.connect(store.path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked; another program holds it"):
            store.put(whole_run()).result()
        other.close()
        with pytest.raises(StoreError, match="locked"):  # nothing that comes later overtakes what was lost
            store.put(whole_run()).result()


def test_a_full_disk_fails_with_the_remedy_and_keeps_what_was_committed(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.put(reply_rows(KEY)).result()
        small = lambda connection, _: connection.execute("PRAGMA max_page_count = 60")  # noqa: E731
        event.listen(store._database.engine, "connect", small)
        store._database.engine.dispose()
        with pytest.raises(StoreError, match="full; make room"):
            store.put([rows.text_row("x" * 1_000_000)]).result()
    with Store.open(tmp_path) as store:
        assert store.sample_count(RUN.id) == 1


def test_two_workers_on_one_run_are_refused(store: Store) -> None:
    with store.lock("run"):
        with pytest.raises(StoreError, match="another process"), store.lock("run"):
            pass
        with store.lock("another run"):
            pass
        assert store.is_held("run")
        assert store.is_held("run"), "asking takes nothing from who holds it"
    assert not store.is_held("run")
    with store.lock("run"):
        pass
    assert [path.name for path in store.folder.glob("*.lock")] == []
