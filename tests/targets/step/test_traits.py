"""The classes of the paper's table 2, from the oracles of its benchmark."""

from collections import Counter

import pytest

from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.protocols import Classified

STEP = get_target("step")
assert isinstance(STEP, Classified)


def _traits(name: str, source: str | None = None) -> str | None:
    (task,) = load_tasks([name])
    found = STEP.find_traits(task, source if source is not None else task.impl or "")
    return found.name if found else None


def test_the_oracles_fall_into_the_classes_that_the_paper_counts():
    counts = Counter(_traits(task.id) for task in load_tasks(["step26"]))
    assert counts == {"Arith-Once": 7, "Arith-Reuse": 8, "Shape-Once": 7, "Shape-Reuse": 4}


@pytest.mark.parametrize(
    ("task", "kind"),
    [("attn_0", "Arith-Once"), ("attn_2", "Arith-Reuse"), ("bmm_1", "Shape-Once"), ("rope_2", "Shape-Reuse")],
)
def test_one_oracle_of_each_class(task: str, kind: str):
    assert _traits(task) == kind


def test_a_copy_that_nobody_needs_is_no_reuse():
    (task,) = load_tasks(["rope_0"])
    copied = "X0, X1 = step.Copy().apply(E0)\n" + (task.impl or "").replace("E0", "X0")
    assert STEP.check_program(task, copied).program is not None
    assert _traits("rope_0", copied) == "Arith-Once"


def test_what_is_no_program_has_no_traits():
    assert _traits("rope_0", "return E99") is None
