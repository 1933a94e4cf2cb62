"""An operator with several programs calls the one whose measured sizes are nearest."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from opsmith.targets import get_target
from opsmith.targets.c.library.sized import write_choosing_unit
from opsmith.targets.native.signature import make_signature
from opsmith.targets.native.task import read_native_task

PROBLEM = """
problem: scale
dims: {opsmith: 4, log: 8}
inputs: [{name: sizes, dtype: fp32, shape: [opsmith, log], data: normal}]
scalars: {by: 2.0}
outputs: [{name: y, dtype: fp32, shape: [opsmith, log]}]
reference: |
  def scale(sizes, by):
      return sizes * by
"""
SIZES = [
    {"small": {"opsmith": 8, "log": 8}, "tall": {"opsmith": 4096, "log": 8}},
    {"large": {"opsmith": 4096, "log": 4096}},
]


@needs_compiler
def test_a_call_takes_the_program_of_the_nearest_measured_sizes_whatever_arguments_are_called(tmp_path: Path) -> None:
    problem, _ = read_native_task(get_target("c").read_task(PROBLEM, "scale").text)
    signature = make_signature(problem)
    declared = ", ".join(argument.declaration for argument in signature.arguments)
    unit = write_choosing_unit(["program_0", "program_1"], problem, SIZES)
    stubs = [f"void program_{number}({declared}) {{ y[0] = {number + 1}.0f * (float)by; }}\n" for number in range(2)]
    (tmp_path / "unit.c").write_text(f"{signature.header}{unit}{''.join(stubs)}")
    library = tmp_path / "unit.so"
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-O2", "-shared", "-fPIC", tmp_path / "unit.c", "-o", library, "-lm"], check=True
    )
    kernel = ctypes.CDLL(str(library)).kernel
    kernel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_double]

    def call(rows: int, columns: int) -> float:
        result = (ctypes.c_float * 1)()
        kernel(None, result, rows, columns, 2.0)
        return float(result[0])

    assert [call(8, 8), call(1, 1), call(4096, 30), call(100_000, 8)] == [2.0] * 4
    assert [call(4096, 4096), call(9000, 700), call(1000, 1000)] == [4.0] * 3
    assert call(4096, 181) == pytest.approx(2.0)  # the halves meet at the geometric mean, 181.02
    assert call(4096, 182) == pytest.approx(4.0)
