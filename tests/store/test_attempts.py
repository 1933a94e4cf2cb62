"""What reports ask of a store: many samples in few rows, and the same answers as one by one."""

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from sqlalchemy import event
from store.test_store import KEY, RUN, whole_run

from opsmith.learn.loop import improve
from opsmith.records import Usage
from opsmith.store import Store
from opsmith.store import attempts as stored
from opsmith.store.spending import prompt_tokens_by_round, usage_by


@pytest.fixture(scope="module")
def ran(where_all):
    with Store.open(where_all) as store:
        yield (
            store,
            improve(TASKS, TinyModel(), SETTINGS.replace(samples=6), store, judge=InProcess()).run,
        )


def test_attempts_count_every_judged_sample_once(ran):
    store, run = ran
    judged = {
        task.id: sum(tally.judged for tally in store.read_tallies(run) if tally.task == task.id) for task in TASKS
    }
    for task in TASKS:
        found = stored.list_attempts(store, run, task.id, 10_000)
        assert (
            sum(attempt.count for attempt in found)
            == judged[task.id]
            == sum(stored.count_stages(store, run, task.id).values())
        )
        assert len({attempt.program for attempt in found}) == len(found)
        assert stored.list_attempts(store, run, task.id, 2) == found[:2]


def test_frequent_programs_come_first_of_those_right_ones_and_before_all_one_that_is_named(ran):
    store, run = ran
    for task in TASKS:
        found = stored.list_attempts(store, run, task.id, 10_000)
        keys = [(-attempt.count, attempt.outcome.value != "passed") for attempt in found]
        assert keys == sorted(keys)
        assert stored.list_attempts(store, run, task.id, 1, first=found[-1].program) == [found[-1]]


def test_details_of_many_samples_are_those_of_each(ran):
    store, run = ran
    ids = [row.id for row in store.list_samples(run)][::7]
    assert store.read_details(ids) == {name: store.find_sample(run, name) for name in ids}


def test_the_first_sample_of_an_attempt_held_its_program(ran):
    store, run = ran
    first = stored.list_attempts(store, run, TASKS[0].id, 1)[0]
    held = [found for found in store.find_sample(run, first.sample).candidates if found.final]
    assert [found.verdict.candidate for found in held] == [first.program]
    earlier = [row for row in store.list_samples(run) if row.task == TASKS[0].id and row.round < first.round]
    assert first.program not in {
        found.verdict.candidate for row in earlier for found in store.find_sample(run, row.id).candidates
    }


def test_what_the_rounds_spent_is_what_the_run_spent(ran):
    store, run = ran
    spent = stored.spent_by_round(store, run)
    assert Usage.total(found.usage for found in spent.values()) == store.sum_usage(run)
    assert sum(found.samples for found in spent.values()) == store.sample_count(run)


def test_a_table_has_a_row_for_every_sample(ran):
    store, run = ran
    table = list(stored.rows_of_run(store, run))
    assert [row["sample"] for row in table] == [row.id for row in store.list_samples(run)]
    assert sum(row["output_tokens"] for row in table) == store.sum_usage(run).output_tokens


@pytest.mark.parametrize("by", ["round", "task", "agent"])
def test_what_was_spent_on_the_parts_is_what_the_run_spent(ran, by):
    store, run = ran
    parts = usage_by(store, run, by)
    assert Usage.total(parts.values()) == store.sum_usage(run)
    if by == "agent":
        assert {agent: store.sum_usage(run, agent) for agent in parts} == parts


def test_sums_and_details_read_no_table_as_a_whole(tmp_path):
    with Store.open(tmp_path) as store:
        store.put(whole_run()).result()
        engine, asked = store._database.engine, []
        event.listen(engine, "before_cursor_execute", lambda *call: asked.append((call[2], call[3])))
        for by in ("round", "task", "agent"):
            usage_by(store, RUN.id, by)
        prompt_tokens_by_round(store, RUN.id)
        sums = len(asked)
        assert store.read_details([KEY.id])[KEY.id] == store.find_sample(RUN.id, KEY.id)
        with engine.connect() as connection:
            plans = [
                " | ".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values))
                for query, values in list(asked)
            ]
    assert all("reply USING COVERING INDEX reply_by_request" in plan for plan in plans[:sums]), plans
    assert not any("SCAN request" in plan or "SCAN reply" in plan for plan in plans), plans
