"""What came of optimisation rounds is told from stored rows: states, ratios along descent, what is kept, what it cost."""

from dataclasses import replace

import pytest
from optimised_store import OPTIMISED, SUGGESTION, add_optimisation, write_functional
from speed_store import make_report, spread

from opsmith.measuring.claims import Claim
from opsmith.measuring.record import SpeedRatio
from opsmith.results.optimisation import COMPILE, HARDER, START, read_optimisation
from opsmith.results.states import AttemptState
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows


@pytest.fixture(scope="module")
def optimised(tmp_path_factory):
    path = tmp_path_factory.mktemp("optimised") / "opsmith.sqlite"
    run = write_functional(path)
    with Store.open(path) as store:
        assert read_optimisation(store, run) is None
        add_optimisation(store, run)
        yield store, run, read_optimisation(store, run)


def test_each_step_has_its_suggestion_state_and_ratio_to_what_it_set_out_from(optimised):
    task = optimised[2].tasks[0]
    assert [step.state for step in task.steps] == [
        AttemptState.CORRECT, AttemptState.CORRECT, AttemptState.MISMATCH, AttemptState.GENERATION,
        AttemptState.CORRECT, AttemptState.COMPILE, None, AttemptState.RUNTIME,
    ]  # fmt: skip
    ratios = [None if step.ratio is None else round(step.ratio.value, 9) for step in task.steps]
    assert ratios == [1.5, 0.8, None, None, 1.2, None, None, None]
    assert all(step.row.suggestion == SUGGESTION for step in task.steps)


def test_ratios_to_the_start_program_are_measured_or_chained(optimised):
    task = optimised[2].tasks[0]
    chained = [None if step.to_start is None else round(step.to_start.value, 9) for step in task.steps]
    assert chained == [1.5, 0.8, None, None, 1.75, None, None, None]  # the last one has its full grade


def test_kept_is_what_a_later_step_set_out_from_or_the_best_at_the_end(optimised):
    task = optimised[2].tasks[0]
    assert [step.is_kept for step in task.steps] == [True, False, False, False, True, False, False, False]
    assert task.best == task.steps[4].row.candidate
    assert {step.parent_sample for step in task.steps[:4]} == {None}
    assert {step.parent_sample for step in task.steps[4:]} == {task.steps[0].row.sample}


def test_the_gain_is_of_the_full_grade_and_carries_its_claim(optimised):
    result = optimised[2]
    assert {task.task for task in result.tasks} == set(OPTIMISED)
    assert [round(task.gain.value, 9) for task in result.tasks] == [1.75, 1.75]
    assert {task.claim for task in result.tasks} == {Claim.FASTER}
    assert result.gain is not None
    assert result.gain.value == pytest.approx(1.75)
    assert result.tasks[0].to_partner(HARDER) == result.tasks[0].to_partner(COMPILE) == pytest.approx(1.25)


@pytest.mark.parametrize(("share", "claim"), [(0.5, Claim.FASTER), (2.0, Claim.IN_PROCESS)])
def test_a_mean_is_claimed_where_both_clocks_show_it_though_one_shape_is_in_process_only(tmp_path, share, claim):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        add_optimisation(store, run)
        task = read_optimisation(store, run).tasks[0]
        coarse = SpeedRatio(task.start, spread(1.2), spread(1.2, share), Claim.IN_PROCESS)
        report = make_report(task.best, "large", 10.0, 1.2)
        speed = StoredSpeed(
            task.task, task.steps[4].row.sample, replace(report, measurement=replace(report.measurement, ratio=coarse))
        )
        store.put(speed_rows(run, speed)).result()
        assert read_optimisation(store, run).tasks[0].claim is claim


def test_tasks_without_a_faster_program_count_in_fast_p(optimised):
    store, run, result = optimised
    tasks = len(store.read_tasks(run))
    start = next(metrics for metrics in result.partners if metrics.partner == START)
    shares = {share.threshold: share.share for share in start.fast_shares}
    assert shares[1.5].value == pytest.approx(2 / tasks)
    assert shares[2.0].value == 0.0
    assert shares[1.5].tasks == tasks
    assert [metrics.partner for metrics in result.partners][-1] == HARDER


def test_states_are_counted_by_round_in_both_phases(optimised):
    store, run, result = optimised
    assert sum(sum(counts.values()) for counts in result.states.values()) == store.sample_count(run)
    assert result.states[result.first] == {
        AttemptState.CORRECT: 4, AttemptState.MISMATCH: 2, AttemptState.GENERATION: 2,
    }  # fmt: skip
    assert result.states[result.first + 1][None] == 2


def test_a_gained_per_cent_has_a_price_in_money_tokens_and_seconds(optimised):
    result = optimised[2]
    requests = result.usage.requests
    assert requests == 2 * (8 * 2 + 1)  # analyst and proposer of each step, and a fix for each task
    assert result.cost is not None
    assert result.cost.usd == pytest.approx(0.001 * requests / 75)
    assert result.cost.tokens == pytest.approx(110 * requests / 75)
    assert result.measured_seconds == pytest.approx(2 * 7 * 0.5)
    assert result.cost.measured_seconds == pytest.approx(7 / 75)


def test_tasks_become_right_within_some_attempts(optimised):
    store, run, result = optimised
    values = [share.value for share in result.within]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(len(store.read_experiences(run)) / len(store.read_tasks(run)))
