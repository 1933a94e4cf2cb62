"""What generated test scripts need beside the language: the checker, random multihots, a script at other sizes."""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.decisions import MARGIN
from opsmith.step.fns import OfferedFn
from opsmith.step.sizes import plain_dim
from opsmith.step.streams import StepError, Stream
from opsmith.targets.step.language import check
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import DType


def check_program(
    impl: str,
    inputs: Sequence[Stream],
    outputs: Mapping[str, tuple[DType, Sequence[Any]]],
    fns: Mapping[str, OfferedFn],
) -> None:
    """Raises StepError with every LANG, TYPE, OUT and AFFINE finding about the program text `impl`.

    `outputs`: name -> (dtype, dims) of each wanted output, in order; `fns`: the functions by the name used in `impl`.
    """
    spec = TaskSpec(
        tuple(TensorSpec(stream.name, stream.dtype, stream.type.dims) for stream in inputs),
        tuple(OutputSpec(name, dtype, tuple(map(plain_dim, dims)), ()) for name, (dtype, dims) in outputs.items()),
        fns=tuple(fn.core_fn(name) for name, fn in fns.items()),
    )
    report = check.check_program(spec, impl, inputs[0].ctx.sizes)
    if report.errors:
        raise StepError(report.errors)


def multihot(shape: Sequence[int], min: int, max: int) -> Tensor:
    """Rows (the last axis) of zeros with `min` to `max` ones, drawn row by row from torch's generator."""
    rows = torch.zeros(*shape)
    for row in rows.view(-1, shape[-1]):
        count = int(torch.randint(min, max + 1, (1,)))
        row[torch.randperm(shape[-1])[:count]] = 1
    return rows


def decides_clearly(distances: Sequence[Any]) -> bool:
    """Whether all distances of discrete decisions from their boundaries are wide enough."""
    return all(bool((torch.as_tensor(distance) >= MARGIN).all()) for distance in distances)


def rerun(path: str, **names: Any) -> dict[str, Any]:
    """The names of a script that is executed anew with these names already set."""
    return runpy.run_path(path, init_globals=names)
