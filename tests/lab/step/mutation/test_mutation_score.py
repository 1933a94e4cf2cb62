"""The mutation score: its edits, its counts, its table; and a sample of it on some of the 26 tasks."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from opsmith.cli.app import build_app
from opsmith.judging.verifier import verify
from opsmith.records import Outcome, Stage, Verdict
from opsmith.suites import load_tasks, task_files
from opsmith.targets.step import spec_of
from opsmith_lab.step.mutation.edits import edit_program
from opsmith_lab.step.mutation.fn_edits import edit_fn
from opsmith_lab.step.mutation.populations import Populations, diff_lines
from opsmith_lab.step.mutation.score import (
    FALSE_ACCEPT,
    FALSE_REFUSAL,
    read_entries,
    read_explanations,
    score_populations,
)
from opsmith_lab.step.mutation.straight import read_straight

SAMPLED = ("gemm_1", "index_3", "norm_1", "rope_2")


def task_named(name):
    return load_tasks((name,))[0]


def judged_here(programs):
    torch.set_num_threads(1)
    return [verify(task, source) for task, source in programs]


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sample_of_the_edits_holds_no_false_verdict(name):
    found = score_populations(Populations(task_named(name), sample=10), judged_here, read_explanations(name))
    assert found.is_clean, found.findings
    assert found.count_programs("MATCH"), (
        "no program came as far as its values: the sample is too small to say anything"
    )
    assert found.count_programs("equivalent")


def test_a_judge_that_accepts_everything_has_false_accepts():
    accept = Verdict("", Stage.MATCH, Outcome.PASSED, verify(task_named("rope_0"), "return E1").charged_to)
    found = score_populations(
        Populations(task_named("rope_0"), sample=50), lambda programs: [accept] * len(programs), {}
    )
    assert {finding.what for finding in found.findings} == {FALSE_ACCEPT}
    assert not found.is_clean


def test_a_judge_that_refuses_everything_has_false_refusals():
    refused = verify(task_named("rope_0"), "return E1")
    found = score_populations(
        Populations(task_named("rope_0"), sample=50), lambda programs: [refused] * len(programs), {}
    )
    assert {finding.what for finding in found.findings} == {FALSE_REFUSAL}
    assert found.count_programs(FALSE_REFUSAL) == len(found.findings)


def test_a_size_that_does_not_divide_at_another_shape_is_no_false_refusal():
    task = task_named("norm_2")
    halves = "A = step.Reshape(S=2, L=[0]).apply(E8)\nB = step.Reshape(S=2, L=[1]).apply(A)\nC = step.Flatten(L=[1, 2]).apply(B)"
    verdict = verify(task, task.impl.replace("E9 =", f"{halves}\nE9 =").replace("(E2, E8)", "(E2, C)"))
    assert verdict.stage == Stage.RUN
    found = score_populations(Populations(task, sample=3), lambda programs: [verdict] * len(programs), {})
    assert found.is_clean
    assert found.count_programs("RUN")


def test_an_explained_change_is_no_false_accept_and_one_that_is_not_accepted_is_stale():
    populations = Populations(task_named("rope_0"))
    mutants = list(populations.iterate_mutants())
    right, wrong = (next(mutant for mutant in mutants if mutant.is_right is wanted) for wanted in (True, False))
    refused, accepted = verify(right.task, "return E1"), verify(right.task, right.source)
    judge = lambda programs: [accepted if source == wrong.source else refused for _, source in programs]  # noqa: E731
    found = score_populations(populations, judge, {wrong.change: "why", "+ X = nothing\n": "it is not there"})
    assert found.stale == ("+ X = nothing\n",)
    assert found.count_programs("explained") == 1
    assert not [finding for finding in found.findings if finding.what == FALSE_ACCEPT]


def test_every_program_is_counted_once():
    populations = Populations(task_named("rope_2"), sample=60)
    mutants = list(populations.iterate_mutants())
    edited = [(mutant.task.text, mutant.source) for mutant in mutants if mutant.population != "variants"]
    assert len(set(edited)) == len(edited)
    refused = verify(task_named("rope_2"), "return E0")
    found = score_populations(
        Populations(task_named("rope_2"), sample=60), lambda programs: [refused] * len(programs), {}
    )
    assert found.count_programs() == len(mutants) + sum(populations.refused.values())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("primitive", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ E2 = step.Accum(fn=fn_sum, b=1).apply(E0)\n"),
        ("argument", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ E2 = step.Scan(fn=fn_sum, b=2).apply(E0)\n"),
        ("function", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ E2 = step.Scan(fn=fn_neoxrope, b=1).apply(E0)\n"),
        ("stream", "- E3 = step.Map(fn=fn_neoxrope).apply((E2, E1))\n+ E3 = step.Map(fn=fn_neoxrope).apply((E2, E0))\n"),
        ("stream", "- E3 = step.Map(fn=fn_neoxrope).apply((E2, E1))\n+ E3 = step.Map(fn=fn_neoxrope).apply((E1, E2))\n"),
        ("drop", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n- E3 = step.Map(fn=fn_neoxrope).apply((E2, E1))\n+ E3 = step.Map(fn=fn_neoxrope).apply((E0, E1))\n"),
        ("double", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ X = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ E2 = step.Scan(fn=fn_sum, b=1).apply(X)\n"),
        ("insert", "- E2 = step.Scan(fn=fn_sum, b=1).apply(E0)\n+ X = step.Repeat(n=1).apply(E0)\n+ E2 = step.Scan(fn=fn_sum, b=1).apply(X)\n"),
        ("return", "- return E3\n+ return E1\n"),
    ],
)  # fmt: skip
def test_each_kind_of_edit_is_made(kind, change):
    task = task_named("rope_0")
    spec = spec_of(task.text)
    program = read_straight(spec, task.impl)
    made = {diff_lines(str(program), str(edit.program)) for edit in edit_program(spec, program) if edit.kind == kind}
    assert sorted(change.splitlines()) in [sorted(found.splitlines()) for found in made]


def test_a_program_with_loops_is_unrolled_before_it_is_edited():
    task = task_named("shares_0")
    program = read_straight(spec_of(task.text), task.impl)
    assert [statement.op for statement in program.statements].count("Accum") == 2
    assert verify(task, str(program)).passed


def test_edits_of_a_function_change_operators_fields_numbers_and_start_values():
    spec = spec_of(task_named("attn_2").text)
    weighted = {fn.apply.strip() for fn in edit_fn(spec.fn_table["fn_wssingle"])}
    assert "return [state[0] * input[1] - input[0]]" in weighted
    assert "return [state[0] * input[0] + input[0]]" in weighted
    assert "return [state[0] * input[1]]" in weighted
    starts = {fn.init for fn in edit_fn(spec.fn_table["fn_expmaxdiff"])}
    assert (0.0, 0, 0) in starts
    assert all(changed != fn for fn in spec.fns for changed in edit_fn(fn))


def test_entries_of_the_table_say_where_and_why():
    known = {path.stem for suite in ("step26", "blocks") for path in task_files(suite)}
    for entry in read_entries():
        assert set(entry) == {"why", "tasks", "changes"}
        assert set(entry["tasks"]) <= known
        assert len(entry["why"]) > 40
        assert all(change.endswith("\n") for change in entry["changes"])
    changes = [(task, change) for entry in read_entries() for task in entry["tasks"] for change in entry["changes"]]
    assert len(set(changes)) == len(changes)


def test_a_task_without_a_right_program_is_refused():
    with pytest.raises(ValueError, match="the checker refuses"):
        Populations(replace(task_named("rope_0"), impl="return E0"))


def test_the_command_prints_json_and_ends_in_0_when_no_verdict_is_false():
    done = CliRunner().invoke(build_app(), ["bench", "mutation", "index_3", "--sample", "5", "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert found["task"] == "index_3"
    assert set(found["tallies"]) == {"edits", "repaired", "chains", "fns", "variants"}


@pytest.mark.parametrize(
    ("name", "total", "over"), [("norm_1", "E3", "E1"), ("norm_1", "E10", "E9"), ("norm_2", "E4", "E3")]
)
def test_a_sum_of_sums_is_as_right_as_one_sum(name, total, over):
    task = task_named(name)
    one = f"{total} = step.Accum(fn=fn_add, b=1).apply({over})"
    pairs = f"P = step.Reshape(S=2, L=[0]).apply({over})\nQ = step.Accum(fn=fn_add, b=1).apply(P)"
    assert one in task.impl
    verdict = verify(task, task.impl.replace(one, f"{pairs}\n{total} = step.Accum(fn=fn_add, b=1).apply(Q)"))
    assert verdict.passed, verdict.message
