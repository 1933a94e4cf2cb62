"""Precision: the torch dtypes of declared number types, as declared or raised to float64.

Data is either in the declared precision or *wide*: all floating tensors and torch's default dtype are then float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from opsmith.problems.dtypes import FLOATS, TORCH_NAMES

TORCH_DTYPES: Mapping[str, torch.dtype] = {name: getattr(torch, word) for name, word in TORCH_NAMES.items()}


def dtype_of(name: str, wide: bool = False) -> torch.dtype:
    """The dtype of tensors declared as `name`; `wide` makes every floating one float64."""
    return torch.float64 if wide and name in FLOATS else TORCH_DTYPES[name]


def widen_floats(tensor: Tensor) -> Tensor:
    """The same numbers with floats as float64."""
    return tensor.double() if tensor.is_floating_point() else tensor


def default_of(wide: bool) -> torch.dtype:
    """torch's default dtype while authors' code runs."""
    return torch.float64 if wide else torch.float32


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """torch's default dtype for the block, restored whatever happens."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class ClashSettling(TorchFunctionMode):
    """Calls of torch that fail because floats of a narrower type meet float64 are made again in float64 throughout: the
    reference is raised to it, and constants that it made in a type of its own are not."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if not _CLASH.search(str(error)):
                raise
            args, kwargs = tree_map_only(Tensor, widen_floats, (args, kwargs or {}))
            return func(*args, **kwargs)


_CLASH = re.compile(r"dtype|scalar type|[Tt]ype \(\w+\) and \w+ type")


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """torch's global CPU generator seeded for the block; the process's own state comes back afterwards."""
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)
