"""The second suite: every primitive in use, and for each shape primitive a place that no other one can fill."""

import itertools

import pytest
import torch
import yaml

from opsmith.benchmarks import read_task_file, task_files
from opsmith.targets.step.ir import read_spec_with_warnings
from opsmith.targets.step.language.types import fields_of
from opsmith.verification.verifier import verify

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
    loaded, operand = read_task_file(FILES[task]), place.split(".apply(")[1]
    first = operand.strip("()").split(", ")[0]  # RepeatRef has two operands, its stand-ins one
    assert loaded.impl.count(place) == 1
    for stand_in in STAND_INS:
        if f"step.{primitive}(" not in stand_in:
            verdict = verify(loaded, loaded.impl.replace(place, f"{stand_in}.apply({first})"))
            assert not verdict.passed, stand_in
