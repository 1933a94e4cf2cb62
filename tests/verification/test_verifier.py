"""The verdict as a pure function: what is refused where, and what is never held against a candidate."""

import math
from dataclasses import replace

import pytest
from scripted_target import TASK, Scripted

from opsmith.records import Boundary, Candidate, Outcome, Stage
from opsmith.verification.verifier import verify, verify_many


def test_a_right_program_passes_every_trial():
    verdict = verify(TASK, "right")
    assert verdict.passed
    assert (verdict.stage, verdict.trials, verdict.warnings) == (Stage.MATCH, 3, ("seen",))
    assert verdict.max_abs_error == pytest.approx(2e-7)
    assert verdict.candidate == Candidate("right").id
    assert verdict.verifier == "scripted-1"
    assert verdict.seconds > 0


def test_a_wrong_program_stops_at_its_first_failing_trial():
    verdict = verify(TASK, "wrong")
    assert verdict.outcome is Outcome.REFUSED
    assert (verdict.stage, verdict.trials, verdict.max_abs_error) == (Stage.MATCH, 2, 1.0)
    assert "DATA line 1: wrong" in verdict.message


def test_an_error_that_is_not_a_number_counts_as_infinite():
    assert verify(TASK, "nan").max_abs_error == math.inf


@pytest.mark.parametrize("stage", ["PARSE", "TYPE", "AFFINE"])
def test_a_static_refusal_runs_no_trial(stage):
    verdict = verify(TASK, f"refuse {stage}")
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.stage is Stage[stage]
    assert (verdict.trials, verdict.max_abs_error) == (0, None)


def test_a_fault_of_the_tasks_author_leaves_the_candidate_unjudged():
    verdict = verify(TASK, "fault")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)
    assert "fn_x" in verdict.message


@pytest.mark.parametrize(
    ("source", "words"),
    [("break the check", "KeyError"), ("unknown word", "_unknown"), ("unprintable", "_Unprintable")],
)
def test_a_failure_of_ours_is_charged_to_us(source, words):
    verdict = verify(TASK, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.OURS)
    assert words in verdict.message


def test_a_task_without_trials_passes_nothing():
    verdict = verify(replace(TASK, text="no trials"), "right")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.OURS)


def test_an_unknown_target_is_not_the_candidates_fault():
    verdict = verify(replace(TASK, target="nowhere:NOTHING"), "right")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.OURS)
    assert "nowhere" in verdict.message


def test_many_programs_are_judged_as_each_alone():
    sources = ["right", "wrong", "refuse TYPE", "right # again", "nan", "break the check", "right"]
    verdicts = verify_many(TASK, sources)
    assert verdicts == [verify(TASK, source) for source in sources]
    assert [verdict.passed for verdict in verdicts] == [True, False, False, True, False, False, True]
    assert verify_many(TASK, []) == []


def test_equal_texts_are_judged_once_and_open_programs_run_together(monkeypatch):
    ran = []
    original = Scripted.run
    monkeypatch.setattr(
        Scripted, "run", lambda self, programs, trial: ran.append(programs) or original(self, programs, trial)
    )
    verify_many(TASK, ["right", "wrong", "right", "right # again"])
    assert ran == [["right", "wrong", "right"], ["right", "wrong", "right"], ["right", "right"]]


@pytest.mark.parametrize("breaker", ["unknown word", "unprintable", "fault"])
def test_a_program_that_breaks_the_run_breaks_only_its_own_verdict(breaker):
    verdicts = verify_many(TASK, ["right", breaker, "wrong"])
    assert verdicts == [verify(TASK, source) for source in ["right", breaker, "wrong"]]
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED, Outcome.UNJUDGED, Outcome.REFUSED]


def test_a_static_refusal_is_made_for_each_text_as_it_quotes_it():
    sources = ["refuse TYPE", "refuse TYPE # 2", "refuse TYPE"]
    verdicts = verify_many(TASK, sources)
    assert [verdict.candidate for verdict in verdicts] == [Candidate(source).id for source in sources]
    assert {verdict.stage for verdict in verdicts} == {Stage.TYPE}


@pytest.mark.parametrize("source", ["memory", "memory_of_torch"])
def test_lack_of_memory_is_neither_the_programs_fault_nor_the_authors(source):
    verdict = verify(TASK, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert "smaller sizes" in verdict.message
