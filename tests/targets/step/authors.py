"""Small tasks with functions, for the tests of what runs author's code: one line per function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from opsmith.problems.bindings import Bindings
from opsmith.problems.drawing import draw_data, widen_data
from opsmith.problems.problem import DEFAULT_SIZES
from opsmith.targets.step.execution.fns import BatchedFn, Plans
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import parse_stream, parse_type

SEED = 1


def function(given: Any, made: Any, body: str, init: tuple[float, ...] | None = None) -> FnSpec:
    return FnSpec("f", "f", body, parse_type(given), parse_type(made), init)


def stream(name: str, text: str, data_gen: str | None = "torch.randn", low: int = 0, high: int = 1) -> TensorSpec:
    """`text` is a printed stream type."""
    kind = parse_stream(text)
    bounds = (low, high) if data_gen in (None, "randint") else (None, None)
    return TensorSpec(name, kind.dtype, kind.dims, data_gen, *bounds)


def output(name: str, text: str, *transforms: str, **tolerance: float) -> OutputSpec:
    kind = parse_stream(text)
    return OutputSpec(name, kind.dtype, kind.dims, transforms, **tolerance)


PLAIN = TaskSpec(
    inputs=(stream("E0", "fp32 [D, N]"),),
    outputs=(output("S0", "fp32 [N]", "input_data['E0'].sum(-1)"),),
    parameters=(stream("W", "fp32 [K, D]"), stream("b", "fp32 [D]")),
    sizes=dict(DEFAULT_SIZES),
)


def task(**changes: Any) -> TaskSpec:
    """PLAIN with some of its parts replaced."""
    return replace(PLAIN, **changes)


def bindings(spec: TaskSpec, wide: bool = False, overrides: Mapping[str, int] | None = None) -> Bindings:
    drawn = draw_data(spec.problem, overrides or {}, SEED)
    return widen_data(spec.problem, drawn, SEED) if wide else drawn


def batched(fn: FnSpec, wide: bool = False, global_code: str = "", plans: Plans | None = None) -> BatchedFn:
    """The function prepared on PLAIN's data."""
    bound = bindings(task(global_code=global_code, fns=(fn,)), wide)
    return BatchedFn(fn, bound.sizes, bound.namespace, wide, {} if plans is None else plans)


def elements(
    fn: BatchedFn, batch: int, seed: int, stateful: bool
) -> tuple[list[torch.Tensor] | None, list[torch.Tensor]]:
    """Random operands of a batch: (state, input)."""
    generator = torch.Generator().manual_seed(seed)

    def column(slots: Any) -> list[torch.Tensor]:
        shapes = [((batch, *slot.shape), slot.dtype) for slot in slots]
        return [
            torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            if dtype.is_floating_point
            else torch.randint(0, 2, shape, generator=generator).to(dtype)
            for shape, dtype in shapes
        ]

    return (column(fn.outputs) if stateful else None), column(fn.inputs)
