"""What reports ask of a store: many samples in few rows, and the same answers as one by one."""

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.records import Usage
from opsmith.store import Store
from opsmith.store import attempts as stored


@pytest.fixture(scope="module")
def ran(where_all):
    with Store.open(where_all) as store:
        yield (
            store,
            improve(TASKS, TinyModel(), SETTINGS.model_copy(update={"samples": 6}), store, judge=InProcess()).run,
        )


def test_attempts_count_every_judged_sample_once(ran):
    store, run = ran
    judged = {task.id: sum(tally.judged for tally in store.tallies(run) if tally.task == task.id) for task in TASKS}
    for task in TASKS:
        found = stored.attempts(store, run, task.id, 10_000)
        assert (
            sum(attempt.count for attempt in found)
            == judged[task.id]
            == sum(stored.stages(store, run, task.id).values())
        )
        assert len({attempt.program for attempt in found}) == len(found)
        assert stored.attempts(store, run, task.id, 2) == found[:2]


def test_frequent_programs_come_first_of_those_right_ones_and_before_all_one_that_is_named(ran):
    store, run = ran
    for task in TASKS:
        found = stored.attempts(store, run, task.id, 10_000)
        keys = [(-attempt.count, attempt.outcome.value != "passed") for attempt in found]
        assert keys == sorted(keys)
        assert stored.attempts(store, run, task.id, 1, first=found[-1].program) == [found[-1]]


def test_details_of_many_samples_are_those_of_each(ran):
    store, run = ran
    ids = [row.id for row in store.samples(run)][::7]
    assert stored.details(store, ids) == {name: store.sample(run, name) for name in ids}


def test_the_first_sample_of_an_attempt_held_its_program(ran):
    store, run = ran
    first = stored.attempts(store, run, TASKS[0].id, 1)[0]
    held = [found for found in store.sample(run, first.sample).candidates if found.final]
    assert [found.verdict.candidate for found in held] == [first.program]
    earlier = [row for row in store.samples(run) if row.task == TASKS[0].id and row.round < first.round]
    assert first.program not in {
        found.verdict.candidate for row in earlier for found in store.sample(run, row.id).candidates
    }


def test_what_the_rounds_spent_is_what_the_run_spent(ran):
    store, run = ran
    spent = stored.spent_by_round(store, run)
    assert Usage.total(found.usage for found in spent.values()) == store.usage(run)
    assert sum(found.samples for found in spent.values()) == store.sample_count(run)


def test_a_table_has_a_row_for_every_sample(ran):
    store, run = ran
    table = list(stored.rows_of_run(store, run))
    assert [row["sample"] for row in table] == [row.id for row in store.samples(run)]
    assert sum(row["output_tokens"] for row in table) == store.usage(run).output_tokens
