"""A program that is right at the stated sizes only is refused at sizes that are not stated; right ones are not."""

import json
from dataclasses import replace
from functools import cache

import pytest
import torch
from suites.size_programs import Sized, own_task, right_programs, wrong_programs

from opsmith.judging.verifier import verify, verify_many
from opsmith.records import FOR_PEOPLE, Level, Outcome, Scrutiny, Stage
from opsmith.report.verdicts import verdict_json
from opsmith.suites import load_tasks
from opsmith.targets.hidden import NOT_SHOWN
from opsmith.targets.step import STEP, StepTarget
from opsmith.targets.step.hidden.work import NEAR

WRONG = list(wrong_programs())
RIGHT = [pytest.param(task, program, id=f"{task.id}: {why}") for task, why, program in right_programs()]
SCRUTINY = Scrutiny("a secret")
ROW = {"E0": "fp32 [N]", "W": "fp32 [K]"}
SUM = "input_data['E0']"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@cache
def bundled():
    return {task.id: task for task in load_tasks(("step26", "step_extra"))}


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_program_that_is_wrong_at_other_sizes_is_refused_there(wrong: Sized) -> None:
    verdict = verify(bundled()[wrong.task], wrong.program)
    assert verdict.outcome is Outcome.REFUSED
    assert {error.where for error in verdict.errors} == {NOT_SHOWN}  # so that it passed the task's own trials


@pytest.mark.parametrize(("task", "program"), RIGHT)
def test_a_right_program_with_loops_over_sizes_passes(task, program):
    verdict = verify(task, program)
    assert verdict.passed, verdict.message + "\n".join(verdict.warnings)


def test_there_are_enough_of_both():
    assert len({wrong.program for wrong in WRONG}) == len(WRONG) >= 48
    assert len({wrong.task for wrong in WRONG}) >= 12
    assert len(RIGHT) >= 28


def test_the_wrong_ones_pass_without_hidden_trials(monkeypatch):
    monkeypatch.setattr(StepTarget, "hidden_trials", lambda self, task, program, scrutiny: None)
    assert [wrong for wrong in WRONG if not verify(bundled()[wrong.task], wrong.program).passed] == []


def test_a_batch_and_isomorphic_programs_get_the_same_verdicts():
    chosen = [wrong.program for wrong in WRONG if wrong.task == "gemm_2"]
    task = bundled()["gemm_2"]
    together = verify_many(task, [*chosen, task.impl or ""])
    assert together == [verify(task, program) for program in [*chosen, task.impl or ""]]
    renamed = chosen[0].replace("E6", "result").replace("spoiling", "i") + "  # in other words"
    first, other = verify(task, chosen[0]), verify(task, renamed)
    assert (first.stage, first.errors, first.trials, first.warnings) == (
        other.stage,
        other.errors,
        other.trials,
        other.warnings,
    )


def test_dead_code_and_names_draw_nothing_anew():
    """Within a run the same is tried, however often a program is sent and however it is written."""
    wrong = next(wrong for wrong in WRONG if wrong.why == "[right, wrong][K_value // 65]")
    task = bundled()["gemm_2"]
    texts = [wrong.program, f"dead = K_value + 3\n{wrong.program}", wrong.program.replace("E6", "result") + "  # again"]

    def list_trials(text, scrutiny):
        hidden = STEP.hidden_trials(task, STEP.check_program(task, text).program, scrutiny)
        return [(trial.name, float(trial.data.bindings[0].input_data["E0"].sum())) for trial in hidden.trials]

    first, *others = [list_trials(text, SCRUTINY) for text in texts]
    assert others == [first, first]
    assert list_trials(wrong.program, Scrutiny("another secret")) != first
    full = list_trials(wrong.program, Scrutiny(SCRUTINY.secret, Level.FULL))
    assert full[: len(first)] == first
    assert len(full) > len(first)


def test_people_are_told_the_sizes_and_machines_are_not():
    wrong = next(wrong for wrong in WRONG if wrong.why == "range(K_value - 64)")
    verdict = verify(bundled()["gemm_2"], wrong.program)
    (seen,) = verdict.warnings
    assert seen.startswith(f"{FOR_PEOPLE}at K = 65, M = 5, N = 7 float64: DATA")
    assert verdict.public_warnings == ()
    shown = json.dumps(verdict_json("gemm_2", verdict))
    assert NOT_SHOWN in shown
    assert "65" not in "".join(f"{error.where}{error.given}{error.expected}{error.remedy}" for error in verdict.errors)


def test_programs_that_read_no_size_are_left_alone():
    impls = [(task, task.impl or "") for task in bundled().values()]
    checked = [(task, STEP.check_program(task, source).program) for task, source in impls]
    flagged = [
        task.id for task, program in checked if program and STEP.hidden_trials(task, program, SCRUTINY) is not None
    ]
    assert len(checked) == 39
    assert flagged == []


def test_a_reshape_that_leaves_a_rest_somewhere_is_not_held_against_a_program():
    task = bundled()["norm_2"]
    program = (task.impl or "").replace("return E9", "E9 = step.Reshape(S=2, L=[0]).apply(E9)\n"
                                        "return step.Flatten(L=[1]).apply(E9)")  # fmt: skip
    assert verify(task, program).passed


def test_the_verdict_says_where_a_trial_costs_too_much():
    task, far = bundled()["totals_0"], "1 // (1 + (M_value - 100003) * (M_value - 100003))"
    program = (
        (task.impl or "")
        .replace("  ", "")
        .replace(
            "return E5, E7",
            f"E5, X = step.Copy().apply(E5)\nX = step.Accum(fn=fn_sum, b=1).apply(step.Repeat(n=2).apply(X))"
            f"\nreturn [E5, X][{far}], E7",
        )
    )  # rows of a Multihot are drawn one by one
    verdict = verify(task, program)
    assert verdict.passed
    (warning,) = verdict.public_warnings
    assert "at D = 16, M = 100003" in warning
    assert "not tried there" in warning


def test_a_size_at_which_the_task_makes_no_sense_is_nobodys_fault():
    """The reference fails at most sizes beyond the stated ones, and a function at some of the rest."""
    text = f"({SUM} + K_value if K_value in (*range(1, 11), 17, 64, 90) else None)"
    task = own_task("partial", ROW, "[N]", text)
    failing = task.text.replace("input[0] + 1", "input[0] + (1 if K_value < 90 else input[7])")
    program = "for i in range(K_value):\n    E0 = step.Map(fn=fn_inc).apply(E0)\nreturn E0"
    assert failing != task.text
    assert verify(replace(task, text=failing), program).passed
    assert (
        verify(task, program.replace("range(K_value)", "range(K_value - K_value // 3 * 3)")).outcome is Outcome.REFUSED
    )


def test_sizes_that_the_task_fixes_are_not_changed():
    task = own_task("fixed", {"E0": "fp32 [M]", "E1": "Multihot(fp32,E) [M]"}, "[M]",
                    "chosen = input_data['E1']\ninput_data['E0'] * (chosen[:, 0] - chosen[:, 1] + chosen[:, 2])",
                    {"E": []})  # fmt: skip
    program = (
        "E2, E3 = step.Copy().apply(E1)\nparts = step.Partition(N=E_value).apply((E0, E2))\n"
        "made = [parts[0], step.Map(fn=fn_neg).apply(parts[1]), parts[2]]\n"
        "for i in range(E_value - 3):\n    made = []\n"
        "return step.Merge(fn=fn_add).apply((made, E3))"
    )
    assert verify(task, program).passed


def test_a_program_that_outgrows_the_language_within_the_tasks_sizes_is_refused():
    task = bundled()["gemm_2"]
    body = "for i in range((K_value - 64) * 5001):\n  E6, X = step.Copy().apply(E6)\n  E6 = step.Identity().apply(E6)"
    verdict = verify(task, (task.impl or "").replace("  ", "").replace("return E6", f"{body}\nreturn E6"))
    assert (verdict.outcome, verdict.stage) == (Outcome.REFUSED, Stage.RUN)
    assert verdict.errors[0].where == NOT_SHOWN


def test_near_sizes_are_tried_first():
    wrong = next(wrong for wrong in WRONG if wrong.why == "[right, wrong][K_value // 65]")
    task = bundled()["gemm_2"]
    found = STEP.hidden_trials(task, STEP.check_program(task, wrong.program).program, SCRUTINY)
    sizes = [trial.data.sizes for trial in found.trials]
    assert sizes[0]["K"] == 65
    assert any(size["K"] % 2 and size["M"] % 2 and size["N"] % 2 for size in sizes)
    assert any(max(size.values()) > NEAR for size in sizes)
