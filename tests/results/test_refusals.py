"""Refusals as groups: what is one cause, what is near, and that no sample is lost or counted twice."""

from collections import Counter

import pytest
from learn.tiny_run import SETTINGS, TASKS, FaultyModel, InProcess

from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve
from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Verdict
from opsmith.results.refusals import (
    RefusalGrouping,
    describe_finding,
    mask_names,
    measure_nearness,
    read_refusals,
)
from opsmith.store import Store
from opsmith.store.refused import RefusalRow
from opsmith.suites import load_tasks


class GuessingModel(FaultyModel):
    """Some requests fail, and some replies hold a name that is not defined, another one each time."""

    def answer(self, request):
        number = request.seed % 97
        return f"impl: |\n  x v{number} +" if number % 4 == 0 else super().answer(request)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("refusals") / "opsmith.sqlite") as store:
        settings = SETTINGS.replace(samples=6, max_rounds=3)
        yield store, improve(TASKS, GuessingModel(share=0.1), settings, store, judge=InProcess()).run


def test_every_refused_sample_is_in_one_group(ran):
    store, run = ran
    refusals = read_refusals(store, run)
    tallies = store.read_tallies(run)
    refused = Counter()
    for tally in tallies:
        refused[tally.task, tally.round] += tally.judged - tally.right
    places = sum((Counter(group.places) for group in refusals.groups), Counter())
    assert places == +refused
    assert refusals.refused == refused.total()
    assert [group.samples for group in refusals.groups] == sorted((g.samples for g in refusals.groups), reverse=True)


def test_programs_that_differ_in_a_name_fail_for_one_reason(ran):
    store, run = ran
    unknown = [group for group in read_refusals(store, run).groups if "…" in group.reason]
    assert len(unknown) == 1
    assert unknown[0].programs > 3
    assert unknown[0].nearest.reason != unknown[0].reason  # its own words: the name


def test_a_tasks_groups_are_those_of_the_run_at_that_task(ran):
    store, run = ran
    whole = read_refusals(store, run)
    for task in (TASKS[0].id, TASKS[2].id):
        own = read_refusals(store, run, task)
        assert sum(group.samples for group in own.groups) == sum(group.tasks[task] for group in whole.groups)
        assert own.nearest[task] == whole.nearest[task]
        first = own.sort_by_nearness()[0]
        assert first.nearest == own.nearest[task]
        detail = store.find_sample(run, first.nearest.sample)
        assert measure_nearness(detail.candidates[-1].verdict) == first.nearest.nearness


def test_rounds_may_be_grouped_one_by_one(ran):
    store, run = ran
    merged = RefusalGrouping()
    for number in range(3):
        single = RefusalGrouping()
        single.add_round(store, run, number)
        merged.merge_grouping(single)
    assert merged.make_refusals().groups == read_refusals(store, run).groups


def test_samples_that_got_no_reply_are_counted_by_who_is_charged(ran):
    store, run = ran
    refusals = read_refusals(store, run)
    planned = sum(info.planned for info, _ in store.read_rounds(run))
    answered = store.sample_count(run)
    assert [(group.charged_to, group.reason) for group in refusals.unjudged] == [
        ("provider", "server: HTTP 500 after 3 tries")
    ]
    assert refusals.unjudged_count == planned - answered > 0


@pytest.mark.parametrize(
    ("finding", "reason"),
    [
        (Diagnostic("LANG", "name", "fn_mul, which is not defined", "one of E0, E1, E2, E3, E4"), "name: …, which is not defined"),
        (Diagnostic("TYPE", "Map of E4 (made by Zip on line 4)", "fp32", "Buffer(fp32, [M])"), "Map: expected Buffer(…)"),
        (Diagnostic("COMPILE", "at x_1", "'x_1' undeclared (here)", "a name"), "… undeclared (here)"),
        (Diagnostic("PARSE", "program", "`__asm__`", "C without inline assembly"), "program: expected C without inline assembly"),
        (Diagnostic("RUN", "base seed 3", "a write 8 bytes behind its end", "writes"), "a write … bytes behind its end"),
        (Diagnostic("MEMORY", "sizes not shown", "a program that breaks a rule there", "x"), "sizes not shown: a program that breaks a rule there"),
        (Diagnostic("STATE", "output y", "-inf in one run, 1.5e+36 in another", "x"), "… in one run, … in another"),
    ],
)  # fmt: skip
def test_what_only_names_a_place_is_left_out_of_a_reason(finding, reason):
    assert mask_names(describe_finding(finding)) == reason


def test_verdicts_of_today_are_named_by_their_words():
    task = load_tasks(["norm_0"])[0]
    twice = verify(task, (task.impl or "").replace("apply((E6, E10))", "apply((E6, E9))"))
    assert mask_names(describe_finding(twice.errors[0])) == "consumed … times"
    negative = verify(task, (task.impl or "").replace("apply((E2, E3))", "apply((E3, E2))"))
    assert mask_names(describe_finding(negative.errors[0])) == "every entry is … times the expected one"
    assert measure_nearness(negative) > measure_nearness(twice)


def _refuse(stage, given="", trials=0, error=None, line=None, remedy=""):
    finding = Diagnostic("DATA", "output", given, "x", remedy, line)
    return Verdict("", Stage(stage), Outcome.REFUSED, Boundary.CANDIDATE, (finding,), (), error, trials)


LACK = "every entry differs; no stream holds value {} of 7 of the reference, sqrt of add in line 1: y; check"


def test_what_programs_lack_of_the_reference_is_one_sentence():
    task = load_tasks(["norm_0"])[0]
    grouping = RefusalGrouping()
    for number, fn in enumerate(["fn_sqrt", "fn_addeps", "fn_square"]):
        old = "E3 = step.Map(fn=fn_mean)" if fn == "fn_square" else "E8 = step.Map(fn=fn_mean)"
        verdict = verify(task, (task.impl or "").replace(old, old.replace("fn_mean", fn)))
        grouping.add_program(RefusalRow(task.id, 0, verdict.stage, "a", "b", 1, str(number)), verdict)
    refusals = grouping.make_refusals()
    assert refusals.lacks == (
        "3 of 3 refused samples: every entry differs; the first step of the PyTorch reference that they never compute: "
        "mean of E0 in line 1 (1), mean of square in line 1 (2)"
    )
    assert "mean of square" in refusals.sort_by_nearness()[0].reason


def test_nearness_goes_by_stage_then_trials_then_entries_then_reach_then_error_then_line():
    ordered = [
        _refuse("FORMAT"), _refuse("PARSE", line=1), _refuse("PARSE", line=7), _refuse("COMPILE"), _refuse("RUN", trials=4),
        _refuse("MATCH", "nan; 4 of 4 entries differ", 1, float("nan")),
        _refuse("MATCH", "1; 4 of 4 entries differ", 1, 3.0),
        _refuse("MATCH", "1; 3 of 4 entries differ", 1, 0.5),
        _refuse("MATCH", "1; 4 of 4 entries differ", 1, 2.0, remedy=LACK.format(2)),
        _refuse("MATCH", "1; 4 of 4 entries differ", 1, 7.0, remedy=LACK.format(3)),
        _refuse("MATCH", "1; 4 of 4 entries differ", 1, 9.0, remedy="every entry is 2 times the expected one: why?"),
        _refuse("MATCH", "1; 1 of 4 entries differ", 1, 9.0),
        _refuse("MATCH", "1; 4 of 4 entries differ", 2, 9.0),
    ]  # fmt: skip
    assert sorted(ordered, key=measure_nearness) == ordered
