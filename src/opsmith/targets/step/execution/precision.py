"""Precision: the torch dtype of a field, as declared or raised to float64."""

from __future__ import annotations

import torch

from opsmith.problems.dtypes import FLOATS
from opsmith.problems.precision import dtype_of
from opsmith.targets.step.language.types import Field, scalar_of


def torch_dtype(field: Field, wide: bool = False) -> torch.dtype:
    """The dtype of a field's tensors; `wide` makes every floating one float64."""
    return dtype_of(scalar_of(field).name, wide)


def is_floating(field: Field) -> bool:
    return scalar_of(field).name in FLOATS
