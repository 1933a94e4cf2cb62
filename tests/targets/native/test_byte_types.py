"""What C is given for floats of one byte and for packed numbers of four bits does what torch does, for every code."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch
from targets.native.programs import needs_compiler
from torch import Tensor

from opsmith.problems.dtypes import TYPES
from opsmith.problems.problem import ArrayType, InputTensor, Problem
from opsmith.targets.native.signature import make_signature

pytestmark = needs_compiler
NAMES = ("fp8_e4m3", "fp8_e5m2", "int4x2")
LOOP = "void {0}(const {1} *x, {2} *y, long n) {{ for (long i = 0; i < n; i++) y[i] = {0}_of(x[i]); }}\n"
CODES = torch.arange(256, dtype=torch.uint8)


@pytest.fixture(scope="module", params=["-O0", "-O3 -march=native -ffast-math"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("helpers")
    header = make_signature(Problem(tuple(InputTensor(name, ArrayType(name, ())) for name in NAMES), (), ())).header
    rows = [
        ("read_fp8_e4m3", "uint8_t", "float", "fp8_e4m3_to_float"),
        ("read_fp8_e5m2", "uint8_t", "float", "fp8_e5m2_to_float"),
    ]
    rows += [(f"write_{name}", "float", "uint8_t", f"float_to_{name}") for name in NAMES[:2]]
    rows += [("low", "uint8_t", "int", "int4_low"), ("high", "uint8_t", "int", "int4_high")]
    text = header + "".join(LOOP.format(name, *types).replace(f"{name}_of", func) for name, *types, func in rows)
    text += "void pair(const int *x, uint8_t *y, long n) { for (long i = 0; i < n; i++) y[i] = int4_pair(x[i], x[n + i]); }\n"
    (folder / "helpers.c").write_text(text)
    flags = [*request.param.split(), "-Wall", "-Wextra", "-Werror", "-fPIC"]
    subprocess.run(["gcc", *flags, "-c", "helpers.c"], cwd=folder, check=True)
    link = [
        "gcc",
        "-shared",
        "helpers.o",
        "-o",
        "helpers.so",
    ]  # with -ffast-math it would flush subnormals of this process
    subprocess.run(link, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "helpers.so"))


def call(library: ctypes.CDLL, name: str, numbers: Tensor, dtype: torch.dtype, count: int = 0) -> Tensor:
    count = count or len(numbers)
    result = torch.empty(count, dtype=dtype)
    library[name](ctypes.c_void_p(numbers.data_ptr()), ctypes.c_void_p(result.data_ptr()), ctypes.c_long(count))
    return result


@pytest.mark.parametrize(("name", "most"), [("fp8_e4m3", 448.0), ("fp8_e5m2", 57344.0)])
def test_floats_of_a_byte_are_those_of_torch(library: ctypes.CDLL, name: str, most: float) -> None:
    dtype = getattr(torch, TYPES[name].torch)
    values = CODES.view(dtype).float()
    read = call(library, f"read_{name}", CODES, torch.float32)
    assert torch.equal(read.view(torch.int32)[~values.isnan()], values.view(torch.int32)[~values.isnan()])
    assert torch.equal(read.isnan(), values.isnan())
    finite = values[values.isfinite()].unique()
    ties = (finite[1:] + finite[:-1]) / 2
    near = [torch.nextafter(ties, torch.full_like(ties, way)) for way in (-torch.inf, torch.inf)]
    drawn = torch.randint(-(2**31), 2**31 - 1, (1 << 18,), dtype=torch.int32).view(torch.float32)
    numbers = torch.cat([finite, ties, *near, drawn, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])])
    written = call(library, f"write_{name}", numbers, torch.uint8)
    expected = numbers.clamp(-most, most).to(dtype).view(torch.uint8)
    assert torch.equal(written[~numbers.isnan()], expected[~numbers.isnan()])
    assert bool((written[numbers.isnan()] & 0x7F == 0x7F).all())


def test_the_low_nibble_comes_first(library: ctypes.CDLL) -> None:
    low, high = (call(library, name, CODES, torch.int32) for name in ("low", "high"))
    assert (low[0x2F], high[0x2F], low[0x8C], high[0x8C]) == (-1, 2, -4, -8)
    assert torch.equal(call(library, "pair", torch.cat([low, high]), torch.uint8, 256), CODES)
