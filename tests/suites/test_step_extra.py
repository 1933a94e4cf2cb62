"""The second suite: every primitive in use, and for each one a place that no other one can fill."""

import itertools
import re

import pytest
import torch
import yaml

from opsmith.judging.verifier import verify
from opsmith.records import Outcome
from opsmith.suites import read_task_file, task_files
from opsmith.targets.step.ir import read_spec, read_spec_with_warnings
from opsmith.targets.step.language.types import fields_of

FILES = {path.stem: path for path in task_files("step_extra")}
PRIMITIVES = (
    "Map Zip Accum Scan Promote Flatten Reshape Repeat RepeatRef Bufferize Streamify Copy Identity Partition Merge"
)

# primitive -> (task, the application that needs it)
PLACES = {
    "Promote": ("totals_0", "step.Promote(b=1).apply(E2)"),
    "Flatten": ("prefix_0", "step.Flatten(L=[1]).apply(E1)"),
    "Reshape": ("blocks_0", "step.Reshape(S=M, L=[0]).apply(E0)"),
    "Repeat": ("powers_0", "step.Repeat(n=D).apply(E0)"),
    "RepeatRef": ("shares_0", "step.RepeatRef().apply((E12, E11))"),
    "Bufferize": ("transpose_0", "step.Bufferize(a=2).apply(E1)"),
    "Streamify": ("transpose_0", "step.Streamify().apply(E3)"),
    "Map": ("transpose_0", "step.Map(fn=fn_transpose).apply(E2)"),
    "Accum": ("votes_0", "step.Accum(fn=fn_count, b=1).apply(E0)"),
    "Scan": ("powers_0", "step.Scan(fn=fn_mul, b=1).apply(E1)"),
    "Zip": ("extrema_0", "step.Zip().apply((E3, E4))"),
    "Copy": ("extrema_0", "step.Copy().apply(E0)"),
    "Partition": ("digits_0", "step.Partition(N=3).apply((E0, E2))"),
    "Merge": ("digits_0", "step.Merge(fn=fn_halve).apply(([E7, E8, E6], E3))"),
}
STAND_INS = [
    *(f"step.Promote(b={b})" for b in range(4)),
    *(f"step.Flatten(L={list(L)})" for L in [(1,), (2,), (1, 2)]),
    *(f"step.Reshape(S={S}, L={list(L)})" for S, L in itertools.product("MNKD12", [(0,), (1,), (0, 1)])),
    *(f"step.Repeat(n={n})" for n in "MNKD12"),
    *(f"step.Bufferize(a={a})" for a in (1, 2, 3)),
    "step.Streamify()",
    "step.Identity()",
]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def impl_of(task):
    return yaml.safe_load(FILES[task].read_text(encoding="utf-8"))["impl"]


@pytest.mark.parametrize("task", sorted(FILES))
def test_the_oracle_passes_every_trial(task):
    loaded = read_task_file(FILES[task])
    assert not read_spec_with_warnings(FILES[task].read_text(encoding="utf-8"))[1]
    verdict = verify(loaded, loaded.impl)
    assert verdict.passed, verdict.message
    assert not verdict.warnings


def test_every_primitive_is_used():
    programs = "\n".join(impl_of(task) for task in FILES)
    assert [name for name in PRIMITIVES.split() if f"step.{name}(" not in programs] == []


def test_what_the_26_lack_is_there():
    outputs = {task: read_task_file(path) for task, path in FILES.items()}
    specs = {task: read_spec_with_warnings(loaded.text)[0].outputs for task, loaded in outputs.items()}
    assert any(len(fields_of(output.dtype)) > 1 for row in specs.values() for output in row)
    assert "M*N" in {str(dim) for output in specs["prefix_0"] for dim in output.dims}
    assert "1" in {str(dim) for output in specs["totals_0"] for dim in output.dims}


@pytest.mark.parametrize("primitive", PLACES)
def test_no_other_primitive_can_stand_in(primitive):
    task, place = PLACES[primitive]
    loaded = read_task_file(FILES[task])
    assert loaded.impl.count(place) == 1
    for stand_in in stand_ins(primitive, place, [fn.func_name for fn in read_spec(loaded.text).fns]):
        verdict = verify(loaded, loaded.impl.replace(place, stand_in))
        assert verdict.outcome is Outcome.REFUSED, stand_in


def test_every_primitive_but_one_is_needed():
    assert set(PRIMITIVES.split()) - set(PLACES) == {"Identity"}  # which changes nothing, so that no task can need it


def stand_ins(primitive, place, fns):
    """Applications of all other primitives to the operands of this place, or to one of them; and the bare operand."""
    operands = place.split(".apply(", 1)[1][:-1]
    singles = re.findall(r"E\d+", operands)
    with_fn = [
        f"step.{name}" for fn in fns for name in (f"Map(fn={fn})", f"Accum(fn={fn}, b=1)", f"Scan(fn={fn}, b=1)")
    ]
    pairs = ["step.Zip()", "step.RepeatRef()", *(f"step.Partition(N={n})" for n in (1, 2, 3)), *with_fn]
    applied = [f"{op}.apply({one})" for op in [*STAND_INS, *with_fn, "step.Copy()"] for one in singles]
    applied += [f"{op}.apply({operands})" for op in pairs] if len(singles) > 1 else []
    applied += [f"{op}.apply({one})[0]" for op in ["step.Copy()", "step.Partition(N=2)"] for one in singles]
    applied += [*singles, f"{singles[0]}, {singles[0]}", f"[{', '.join(singles)}]"]
    return [text for text in applied if f"step.{primitive}(" not in text]
