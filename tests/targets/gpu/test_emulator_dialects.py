"""The emulator runs another language than CUDA by a table of its words and a header: nothing of it knows CUDA's."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from opsmith.problems.files.reading import read_problem
from opsmith.running.compiler import Artefact
from opsmith.running.toolchain import CXX_COMPILER, NO_CXX_COMPILER, find_toolchain
from opsmith.targets.gpu.binding import bind_plan
from opsmith.targets.gpu.emulator.building import Unemulated, build_emulated
from opsmith.targets.gpu.emulator.dialect import EmulatedDialect, FindingWords
from opsmith.targets.gpu.emulator.findings import EmulatorFinding
from opsmith.targets.gpu.emulator.running import run_emulated
from opsmith.targets.gpu.plan import BoundPlan, LaunchPlan
from opsmith.targets.gpu.reading import read_plan
from opsmith.targets.native.build import BuildRefusal
from opsmith.targets.native.layout import DrawLayout, TrialLayout, read_outputs, write_inputs

pytestmark = pytest.mark.skipif(find_toolchain(CXX_COMPILER) is None, reason=NO_CXX_COMPILER)

WORDS = FindingWords(
    thread="member",
    block="team",
    warp="row",
    shared="team memory",
    device="world memory",
    variable="a global",
    barrier="await_team()",
    warp_barrier="await_row()",
    full_mask="all",
    trap="halt()",
    read_only="peek",
    operations=("await_row",),
)
SHADER = EmulatedDialect(
    name="shader",
    program="kernel.shader",
    headers=Path(__file__).parent / "dialect_headers",
    includes={"shader.h": None},
    foreign=((re.compile(r"\bteleport\b"), "teleporting"),),
    shared="team",
    kernel="compute_kernel void {}(...)",
    pointers={"fp32": "everywhere float *"},
    rewrite=str,
    words=WORDS,
)
PROBLEM = """
problem: turn
dims: {N: 64}
inputs: [{name: x, dtype: fp32, shape: [N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [N]}]
reference: |
  def turn(x):
      return x.flip(0)
"""
RIGHT = """// launch turn grid=(1) block=(N) args=(x, y)
compute_kernel void turn(everywhere const float *x, everywhere float *y) {
  team float row[64];
  row[member] = x[member];
  await_team();
  y[member] = row[63 - member];
}
"""


def bind(source: str) -> BoundPlan:
    plan = read_plan(source)
    assert isinstance(plan, LaunchPlan), plan
    bound = bind_plan(plan, read_problem(PROBLEM).problem)
    assert isinstance(bound, BoundPlan), bound
    return bound


def run_source(source: str, tmp_path: Path) -> list[float]:
    artefact = build_emulated(SHADER, source, bind(source))
    assert isinstance(artefact, Artefact), artefact
    library = tmp_path / "kernel.so"
    library.write_bytes(artefact.data)
    layout = TrialLayout((DrawLayout((256,), (256,), (64,)),), 1)
    inputs = write_inputs(layout, [memoryview(struct.pack("64f", *range(64)))])
    passes = read_outputs(layout, run_emulated(SHADER, [library], bind(source), inputs))
    assert isinstance(passes, list)
    return [number for (number,) in struct.iter_unpack("f", bytes(passes[0]))]


def test_a_program_of_another_language_runs(tmp_path: Path) -> None:
    assert run_source(RIGHT, tmp_path) == [*map(float, reversed(range(64)))]


def test_what_is_found_is_said_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(EmulatorFinding) as caught:
        run_source(RIGHT.replace("  await_team();\n", "\n"), tmp_path)
    assert caught.value.line == 6
    assert str(caught.value).startswith(
        "line 6: member 0 of team (0, 0, 0) of turn reads row[63], team memory that no "
    )
    assert str(caught.value).endswith("has written; try: write every entry that is read, then await_team()")


def test_a_kernel_that_lacks_is_asked_for_in_its_words() -> None:
    refused = build_emulated(SHADER, RIGHT.replace("void turn(", "void rotate("), bind(RIGHT))
    assert isinstance(refused, BuildRefusal)
    assert refused.errors[0].remedy == "define compute_kernel void turn(...), once and without a template"
    mistyped = build_emulated(SHADER, RIGHT.replace("const float *x", "const int *x"), bind(RIGHT))
    assert isinstance(mistyped, BuildRefusal)
    assert "everywhere float *" in mistyped.errors[0].expected


def test_what_it_leaves_out_is_said_with_its_line() -> None:
    left = build_emulated(SHADER, RIGHT.replace("await_team()", "teleport()"), bind(RIGHT))
    assert left == Unemulated("not emulated: line 5: teleporting")
