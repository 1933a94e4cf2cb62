"""Task files in the manner of others: their right programs pass, with a note where less is tried; wrong ones do not.

No file states shape sets, margins or tolerances, and each has something that our sizes, float64 or bounds stumbled over.
"""

from pathlib import Path

import pytest
import torch

from opsmith.judging.audit import audit_task, findings_from_json
from opsmith.judging.verifier import verify, verify_many
from opsmith.records import Boundary, Outcome, Stage
from opsmith.suites import read_task_file
from opsmith.targets.audit import State

FOLDER = Path(__file__).parents[2] / "fixtures" / "others"

# name -> (draws tried, what the notes begin with)
TRIED = {
    "batched_product": (50, []),
    "chained_product": (50, []),
    "masked_norm": (38, []),
    "rotary_arange": (46, ["the reference of S0", "fn_rotate"]),
    "rotary_complex": (46, ["the reference of S0", "fn_rotate"]),
    "rotary_norm": (46, ["the reference of S0", "fn_angle"]),
    "scaled_scores": (46, ["fn_score"]),
    "spread": (34, ["shape set unit", "shape set K1"]),
    "squeezed": (30, ["shape set unit", "shape set N1", "shape set tight"]),
    "topk_features": (30, ["shape set unit", "shape set K1", "shape set tight"]),
    "topk_tokens": (34, ["shape set unit", "shape set M1"]),
}

WRONG = [  # (file, in its program, instead, where it is noticed)
    ("batched_product", "fn=fn_sum", "fn=fn_max", "S0"),
    ("chained_product", "step.Map(fn=fn_mul).apply((E12, E11))", "step.Identity().apply(E12)", "S0"),
    ("masked_norm", "fn_normalise", "fn_careless", "S0"),  # an epsilon beside the root
    ("rotary_arange", "step.Scan(fn=fn_count, b=1)", "step.Identity()", "S0"),
    ("rotary_arange", "apply(E0)", "apply(step.Scan(fn=fn_count, b=1).apply(E0))", "S0"),
    ("rotary_complex", "step.Scan(fn=fn_count, b=1)", "step.Identity()", "S0"),
    ("rotary_norm", "step.Scan(fn=fn_count, b=1)", "step.Identity()", "S0"),
    ("rotary_norm", "fn_normalise", "fn_scale", "S1"),  # an epsilon left out, which float64 alone shows
    ("scaled_scores", "fn_score", "fn_dot", "S0"),
    ("spread", "fn_standardise", "fn_shrink", "S0"),
    ("squeezed", "E2 = step.Map(fn=fn_mul).apply((E0, E1))", "X, Y = step.Copy().apply(E0)\nE2 = step.Map(fn=fn_mul).apply((X, Y))", "S0"),
    ("topk_features", "fn_topsum", "fn_sum", "S0"),
    ("topk_tokens", "step.Map(fn=fn_pick)", "step.Identity()", "S0"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tasks():
    return {path.stem: read_task_file(path) for path in FOLDER.glob("*.yaml")}


def test_every_file_is_expected_to_do_something(tasks):
    assert tasks.keys() == TRIED.keys() == {name for name, *_ in WRONG}


@pytest.mark.parametrize("name", TRIED)
def test_its_own_program_passes_and_the_notes_say_what_was_not_tried(tasks, name):
    task = tasks[name]
    verdict = verify(task, task.impl)
    assert verdict.passed, verdict.message
    trials, beginnings = TRIED[name]
    assert verdict.trials == trials
    assert len(verdict.warnings) == len(beginnings), verdict.warnings
    assert all(note.startswith(words) for note, words in zip(verdict.warnings, beginnings, strict=True))


@pytest.mark.parametrize(("name", "old", "new", "where"), WRONG)
def test_a_wrong_program_is_refused_at_the_first_trial(tasks, name, old, new, where):
    task = tasks[name]
    assert old in task.impl
    verdict = verify(task, task.impl.replace(old, new))
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, Stage.MATCH, 5), verdict.message
    assert verdict.errors[0].where.startswith(f"output {where} ")


@pytest.mark.parametrize("name", ["topk_tokens", "topk_features", "rotary_norm", "masked_norm"])
def test_check_says_the_same(tasks, name):
    task = tasks[name]
    findings = findings_from_json(audit_task(task, task.impl, verify))
    notes = [finding for finding in findings if finding.state is State.NOTE and finding.check != "functions"]
    told = [line for note in notes for line in note.found.split("\n")]
    assert told == list(verify(task, task.impl).warnings)
    assert [finding.state for finding in findings if finding.check == "program"] == [State.FINE]


def test_what_a_program_does_decides_nothing_about_the_sets(tasks):
    """The same notes after wrong programs, alone and together."""
    task = tasks["topk_features"]
    wrong = task.impl.replace("fn_topsum", "fn_sum")
    alone = verify(read_task_file(FOLDER / "topk_features.yaml"), task.impl)
    first, second, third = verify_many(read_task_file(FOLDER / "topk_features.yaml"), [wrong, task.impl, wrong + "# 2"])
    assert (second.warnings, second.trials) == (alone.warnings, alone.trials)
    assert (first.trials, first.warnings) == (third.trials, third.warnings) == (5, ())


def test_a_fault_that_a_program_brings_to_light_leaves_no_set_out(tmp_path):
    """The fn fails on large numbers, of which its own program and random elements have none."""
    text = (FOLDER / "squeezed.yaml").read_text(encoding="utf-8")
    body = "assert input[0].abs() < 1000, 'too much'\n    return [state[0] + input[0]]"
    path = tmp_path / "picky.yaml"
    path.write_text(text.replace("return [state[0] + input[0]]", body), encoding="utf-8")
    task = read_task_file(path)
    assert verify(task, task.impl).passed
    squares = "".join("X, Y = step.Copy().apply(E2)\nE2 = step.Map(fn=fn_mul).apply((X, Y))\n" for _ in range(4))
    verdict = verify(task, task.impl.replace("E3 =", squares + "E3 ="))
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)
    assert "too much" in verdict.message


# ---- bounds: what is wasteful and cheap passes at (32, 64, 64, 64), where M*N*K*D is 8.4 million

SPREAD = """
E2 = step.Bufferize(a=1).apply(E0)
E3 = step.Streamify().apply(step.Repeat(n=D).apply(E2))
E4 = step.Bufferize(a=2).apply(E1)
E5 = step.Streamify().apply(step.Repeat(n=N).apply(E4))
"""
WASTEFUL = {
    "all products in memory, then joined and split": """
E6 = step.Flatten(L=[1]).apply(step.Map(fn=fn_mul).apply((E3, E5)))
return step.Accum(fn=fn_sum, b=1).apply(step.Reshape(S=K, L=[0]).apply(E6))""",
    "operands joined while they are repeated": """
E6 = step.Flatten(L=[1]).apply(step.Zip().apply((E3, E5)))
E7 = step.Reshape(S=K, L=[0]).apply(step.Map(fn=fn_mul).apply(E6))
return step.Accum(fn=fn_sum, b=1).apply(E7)""",
    "a running sum of which the last is the largest part": """
E6 = step.Map(fn=fn_mul).apply((E3, E5))
E7, E8 = step.Copy().apply(E6)
E9 = step.Scan(fn=fn_sum, b=1).apply(E7)
return step.Accum(fn=fn_sum, b=1).apply(E8)""",
    "products with the rows exchanged": """
E6 = step.Map(fn=fn_mul).apply((E5, E3))
return step.Accum(fn=fn_sum, b=1).apply(E6)""",
}


@pytest.mark.parametrize("program", WASTEFUL.values(), ids=WASTEFUL)
def test_a_right_program_that_wastes_a_little_passes(tasks, program):
    verdict = verify(tasks["batched_product"], SPREAD + program)
    assert verdict.passed, verdict.message


HOARD = """
E6, E7 = step.Copy().apply(step.Map(fn=fn_mul).apply((E3, E5)))
E8, E9 = step.Copy().apply(step.Scan(fn=fn_sum, b=1).apply(E7))
E10 = step.Map(fn=fn_mul).apply((E8, step.Scan(fn=fn_sum, b=1).apply(E9)))
return step.Accum(fn=fn_sum, b=1).apply(E6)"""


def test_a_program_that_holds_a_lot_is_refused_before_it_runs_there(tasks):
    verdict = verify(tasks["batched_product"], SPREAD + HOARD)
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, Stage.RUN, 49)
    assert "33554432 elements held at once; expected at most 26214400" in str(verdict.errors[0])
