"""Small specs for the tests of the language: streams, functions and outputs in a line each."""

from __future__ import annotations

from collections.abc import Mapping

from opsmith.problems.problem import DEFAULT_SIZES
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import parse_stream, parse_type

SMALL: Mapping[str, int] = {"M": 3, "N": 2, "K": 2, "D": 4, "E": 2}

FNS = {
    "fn_sq": ("fp32", "fp32", None, "return [input[0] * input[0]]"),
    "fn_neg": ("fp32", "fp32", None, "return [-input[0]]"),
    "fn_add": ("[fp32, fp32]", "fp32", None, "return [input[0] + input[1]]"),
    "fn_add3": ("[fp32, fp32, fp32]", "fp32", None, "return [input[0] + input[1] + input[2]]"),
    "fn_pair": ("fp32", "[fp32, fp32]", None, "return [input[0], 2 * input[0]]"),
    "fn_sum": ("fp32", "fp32", (0.0,), "return [state[0] + input[0]]"),
    "fn_dec": ("fp32", "fp32", (0.0,), "return [state[0] * 10 + input[0]]"),
    "fn_down": ("fp32", "fp32", (-1.0,), "return [state[0] + input[0]]"),
    "fn_inc": ("fp32", "fp32", None, "return [input[0] + 1]"),
    "fn_inc2": ("fp32", "fp32", None, "return [input[0] + 2]"),
}


def spec(
    inputs: str,
    outputs: str = "fp32 [M, N]",
    fns: tuple[str, ...] = tuple(FNS),
    sizes: Mapping[str, int] = SMALL,
) -> TaskSpec:
    """`inputs` and `outputs` are printed stream types, `;` between them: they become E0, E1, ... and S0, S1, ..."""
    made_in = [parse_stream(text) for text in inputs.split(";")]
    made_out = [parse_stream(text) for text in outputs.split(";")]
    return TaskSpec(
        inputs=tuple(
            TensorSpec(f"E{i}", kind.dtype, kind.dims, None if "Multihot" in str(kind) else "torch.randn", 0, 1)
            for i, kind in enumerate(made_in)
        ),
        outputs=tuple(OutputSpec(f"S{i}", kind.dtype, kind.dims, ("None",)) for i, kind in enumerate(made_out)),
        fns=tuple(function(name) for name in fns),
        sizes=dict(DEFAULT_SIZES) | dict(sizes),
    )


def function(name: str) -> FnSpec:
    """One of the table's functions."""
    given, made, init, body = FNS[name]
    return FnSpec(name, name, body, parse_type(given), parse_type(made), init)
