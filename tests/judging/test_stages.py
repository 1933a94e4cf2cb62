"""Stages are a target's to name; a verdict reads back whatever its target is."""

import json

import pytest
from scripted_target import TASK

import opsmith
from opsmith.judging.verifier import verify
from opsmith.records import Boundary, Outcome, Stage, Verdict, dumps, verdict_from_json


def test_a_verdict_of_a_language_that_is_not_here_reads_back():
    verdict = Verdict("c", Stage("COMPILE"), Outcome.REFUSED, Boundary.CANDIDATE, judging_seconds=0.5)
    data = json.loads(dumps(verdict))
    assert (data["stage"], data["seconds"]) == ("COMPILE", 0.5)
    assert "judging_seconds" not in data
    again = verdict_from_json(data)
    assert (again, again.judging_seconds) == (verdict, 0.5)


def test_stages_are_ordered_by_when_they_are_checked_and_unknown_ones_come_before_the_run():
    names = ["FORMAT", "PARSE", "TYPE", "AFFINE", "COMPILE", "LINK", "RUN", "MATCH"]
    assert [stage.name for stage in sorted(map(Stage, reversed(names)))] == names
    assert Stage("MATCH") == opsmith.Stage.MATCH


@pytest.mark.parametrize("name", ["", "late", "TOO LATE", "\x1b[2J", "A" * 31])
def test_a_stage_is_a_short_name_in_capitals(name):
    with pytest.raises(ValueError, match="expected a name in capitals"):
        Stage(name)


def test_a_stage_that_the_target_does_not_have_is_the_targets_mistake():
    verdict = verify(TASK, "refuse COMPILE")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
    assert "given stage COMPILE; expected RUN or one of its stages: ('PARSE', 'TYPE', 'AFFINE')" in verdict.message
