"""The verdict as a pure function: what is refused where, and what is never held against a candidate."""

import math
from dataclasses import replace

import pytest
from scripted_target import FINDING, TASK, Scripted

from opsmith import load_task
from opsmith.judging.verifier import verify, verify_many
from opsmith.records import FOR_PEOPLE, Boundary, Candidate, Outcome, Stage
from opsmith.targets.hidden import NOT_SHOWN
from opsmith.targets.step import STEP


def test_a_right_program_passes_every_trial():
    verdict = verify(TASK, "right")
    assert verdict.passed
    assert (verdict.stage, verdict.trials, verdict.warnings) == (Stage.MATCH, 3, ("seen",))
    assert verdict.max_abs_error == pytest.approx(2e-7)
    assert verdict.candidate == Candidate("right").id
    assert verdict.verifier == "scripted-1"
    assert verdict.judging_seconds > 0


def test_a_wrong_program_stops_at_its_first_failing_trial():
    verdict = verify(TASK, "wrong")
    assert verdict.outcome is Outcome.REFUSED
    assert (verdict.stage, verdict.trials, verdict.max_abs_error) == (Stage.MATCH, 2, 1.0)
    assert "DATA line 1: wrong" in verdict.message


def test_a_trial_that_is_left_out_is_said_and_not_counted():
    task = replace(TASK, text="one is left out")
    right, wrong = verify(task, "right"), verify(task, "wrong")
    assert (right.passed, right.trials, right.warnings) == (True, 2, ("seen", "trial 1 is left out"))
    assert (wrong.stage, wrong.trials) == (Stage.MATCH, 2)  # the third trial refuses it


def test_what_is_to_be_known_of_a_verdict_is_said_once():
    assert verify(TASK, "noted").warnings == ("seen", "by eye", "at trial 0", "at trial 1", "at trial 2")


def test_an_error_that_is_not_a_number_counts_as_infinite():
    assert verify(TASK, "nan").max_abs_error == math.inf


@pytest.mark.parametrize("stage", ["PARSE", "TYPE", "AFFINE"])
def test_a_static_refusal_runs_no_trial(stage):
    verdict = verify(TASK, f"refuse {stage}")
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.stage == Stage(stage)
    assert (verdict.trials, verdict.max_abs_error) == (0, None)


def test_a_fault_of_the_tasks_author_leaves_the_candidate_unjudged():
    verdict = verify(TASK, "fault")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)
    assert "fn_x" in verdict.message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("break the check", "KeyError: 'check' at scripted_target.py:"),
        ("unknown word", "'_unknown' at scripted_target.py:"),
        ("unprintable", "_Unprintable"),
    ],
)
def test_a_failure_of_a_target_of_ones_own_is_charged_to_it_with_its_line(source, words):
    verdict = verify(TASK, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
    assert words in verdict.message
    assert "report this as a bug" not in verdict.message


@pytest.mark.parametrize("method", ["check_program", "list_trials", "run_programs"])
def test_a_failure_of_a_target_that_is_built_in_is_ours(monkeypatch, method):
    def fail(*given: object) -> None:
        raise KeyError("ours")

    task = load_task("bmm_0")
    monkeypatch.setattr(type(STEP), method, fail)
    verdict = verify(task, task.impl)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.OURS)
    assert "KeyError: 'ours'" in verdict.message
    assert "report this as a bug" in verdict.message


def test_a_task_without_trials_passes_nothing():
    verdict = verify(replace(TASK, text="no trials"), "right")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)


def test_an_unknown_target_is_not_the_candidates_fault():
    verdict = verify(replace(TASK, target="nowhere:NOTHING"), "right")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
    assert "nowhere" in verdict.message


def test_many_programs_are_judged_as_each_alone():
    sources = ["right", "wrong", "refuse TYPE", "right # again", "nan", "break the check", "right"]
    verdicts = verify_many(TASK, sources)
    assert verdicts == [verify(TASK, source) for source in sources]
    assert [verdict.passed for verdict in verdicts] == [True, False, False, True, False, False, True]
    assert verify_many(TASK, []) == []


def test_equal_texts_are_judged_once_and_open_programs_run_together(monkeypatch):
    ran = []
    original = Scripted.run_programs
    monkeypatch.setattr(
        Scripted, "run_programs", lambda self, programs, trial: ran.append(programs) or original(self, programs, trial)
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
    assert {verdict.stage for verdict in verdicts} == {Stage("TYPE")}


@pytest.mark.parametrize("source", ["memory", "memory_of_torch"])
def test_lack_of_memory_is_neither_the_programs_fault_nor_the_authors(source):
    verdict = verify(TASK, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert "smaller sizes" in verdict.message


def test_a_flagged_program_must_pass_its_hidden_trials_too():
    verdict = verify(TASK, "hidden right")
    assert verdict.passed
    assert (verdict.trials, verdict.warnings) == (5, ("seen", "not tried at X = 9"))


def test_a_failure_at_hidden_sizes_tells_models_no_size():
    verdict = verify(TASK, "hidden wrong")
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, Stage.MATCH, 4)
    (error,) = verdict.errors
    assert (error.kind, error.where, error.line, error.text) == ("DATA", NOT_SHOWN, 1, "wrong")
    assert FINDING.given not in error.given
    assert verdict.public_warnings == ("seen",)
    assert verdict.warnings[1:] == (f"{FOR_PEOPLE}at X = 7: {FINDING}",)


@pytest.mark.parametrize("breaker", ["fault", "memory"])
def test_a_hidden_size_that_the_task_or_the_machine_cannot_do_is_nobodys_fault(breaker):
    verdict = verify(TASK, f"hidden {breaker}")
    assert verdict.passed
    assert verdict.trials == 3


def test_a_failure_of_a_target_at_hidden_sizes_is_its_own():
    assert verify(TASK, "hidden nothing").charged_to is Boundary.TARGET


def test_hidden_trials_of_a_batch_are_those_of_each_alone():
    sources = ["hidden right", "hidden wrong", "right", "hidden fault"]
    assert verify_many(TASK, sources) == [verify(TASK, source) for source in sources]
