"""The function that a problem asks for: order, types, names, words, and the helpers for bf16."""

import ctypes
from pathlib import Path

import pytest
import torch
from problems.examples import RMS_NORM, SOFTMAX, read_example
from targets.native.programs import PROBLEMS, needs_compiler, request_build

from opsmith.running.compiler import Artefact
from opsmith.suites import load_tasks
from opsmith.targets.native.build import build_library
from opsmith.targets.native.signature import make_signature
from opsmith.targets.step import spec_of


@pytest.mark.parametrize(
    ("problem", "prototype"),
    [
        ("softmax", "void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N);"),
        (
            "rms_norm",
            "void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict y, int64_t M, "
            "int64_t N, double eps);",
        ),
        (
            "top_two",
            "void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N);",
        ),
    ],
)
def test_arguments_are_inputs_outputs_dims_and_scalars(problem: str, prototype: str) -> None:
    assert make_signature(PROBLEMS[problem]).prototype == prototype


def test_names_that_c_takes_for_something_else_get_an_underscore() -> None:
    problem = read_example(SOFTMAX, ("name: x,", "name: double,"), ("name: y,", "name: kernel,"), ("(x", "(double"))
    names = [argument.name for argument in make_signature(problem).arguments]
    assert names == ["double_", "kernel_", "M", "N"]


def test_scalars_are_whole_or_not() -> None:
    problem = read_example(
        RMS_NORM, ("{eps: 1.0e-5}", "{eps: 1.0e-5, groups: 3}"), ("weight, eps)", "weight, eps, groups)")
    )
    assert make_signature(problem).prototype.endswith("double eps, int64_t groups);")


def test_every_bundled_task_has_one() -> None:
    """STeP task files state problems: their functions are not arguments."""
    for task in load_tasks(["step26"]):
        signature = make_signature(spec_of(task.text).problem)
        names = [argument.name for argument in signature.arguments]
        assert len(names) == len(set(names)) >= 3


@needs_compiler
def test_bf16_is_rounded_to_the_nearest(tmp_path: Path) -> None:
    source = (
        "void kernel(const uint16_t *x, const uint16_t *weight, uint16_t *y, int64_t M, int64_t N, double eps) {}\n"
    )
    source += "uint16_t narrow(float value) { return float_to_bf16(value); }\nfloat widen(uint16_t value) { return bf16_to_float(value); }\n"
    result = build_library(request_build(source, "rms_norm"))
    assert isinstance(result, Artefact), result
    (tmp_path / "k.so").write_bytes(result.data)
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    library.narrow.argtypes, library.narrow.restype = [ctypes.c_float], ctypes.c_uint16
    library.widen.argtypes, library.widen.restype = [ctypes.c_uint16], ctypes.c_float
    special = [0.0, -0.0, 1.0, 1.00390625, 1.01171875, float("inf"), -float("inf"), 3.4e38, 1e-40]
    for value in [*special, *torch.randn(200, generator=torch.Generator().manual_seed(0)).tolist()]:
        expected = torch.tensor(value, dtype=torch.float32).bfloat16()
        narrowed = library.narrow(value)
        assert narrowed == expected.view(torch.int16).item() & 0xFFFF
        assert library.widen(narrowed) == expected.float().item()
    assert library.widen(library.narrow(float("nan"))) != library.widen(library.narrow(float("nan")))
