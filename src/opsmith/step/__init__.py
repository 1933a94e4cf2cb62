"""STeP in plain Python: build streams with data, apply primitives, look at the results.

    from opsmith import step
    M, N = step.Dim("M", 3), step.Dim("N", 2)
    ctx = step.Context({M: 3, N: 2})
    E0 = step.Stream("E0", step.Scalar("fp32"), [M, N], [torch.rand(2, 3)], ctx)
    E1 = step.Bufferize(a=1).apply(E0)      # Stream: Buffer(fp32, [M]) [N]

Types are checked by the checker's own code and data is computed by the simulator's own kernels, one application at a
time. Generated test scripts import this module and torch only. The affine rule is not enforced here: it belongs to a
whole program, which `check_program` checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opsmith.problems.dtypes import STREAM_DTYPES
from opsmith.step.fns import OfferedFn as Fn
from opsmith.step.primitives import (
    Accum,
    Bufferize,
    Copy,
    Flatten,
    Identity,
    Map,
    Merge,
    Partition,
    Promote,
    Repeat,
    RepeatLast,
    RepeatRef,
    Reshape,
    Scan,
    Streamify,
    Zip,
)
from opsmith.step.sizes import Size, plain_dim
from opsmith.step.sizes import SizedDim as Dim
from opsmith.step.sizes import plain_dim as dim
from opsmith.step.streams import Context, StepError, Stream
from opsmith.step.testing import check_program, decides_clearly, multihot, rerun
from opsmith.targets.step.language import types


def Scalar(name: str = "fp32") -> types.Scalar:
    """A number type: fp32, fp16, bf16, fp64, int32, int64 or bool. Raises StepTypeError."""
    scalar = types.parse_type(name)
    if not isinstance(scalar, types.Scalar):
        raise types.StepTypeError(f"given {name!r}; expected one of {', '.join(STREAM_DTYPES)}")
    return scalar


def Multihot(scalar: types.Scalar, length: Any) -> types.Multihot:
    """A 0/1 vector of `length` entries."""
    return types.Multihot(scalar, plain_dim(length))


def Buffer(elem: types.Scalar | types.Multihot, dims: Sequence[Any]) -> types.Buffer:
    """A block of elements; dims innermost first."""
    return types.Buffer(elem, tuple(plain_dim(dim) for dim in dims))


def STuple(fields: Sequence[types.Field]) -> types.DType:
    """A tuple type; one field is that field."""
    return types.tuple_of(list(fields))


__all__ = [
    "Accum",
    "Buffer",
    "Bufferize",
    "Context",
    "Copy",
    "Dim",
    "Flatten",
    "Fn",
    "Identity",
    "Map",
    "Merge",
    "Multihot",
    "Partition",
    "Promote",
    "Repeat",
    "RepeatLast",
    "RepeatRef",
    "Reshape",
    "STuple",
    "Scalar",
    "Scan",
    "Size",
    "StepError",
    "Stream",
    "Streamify",
    "Zip",
    "check_program",
    "decides_clearly",
    "dim",
    "multihot",
    "rerun",
]
