"""vmap with little overhead: a body written for one element, called once on a whole batch.

torch.vmap spends most of its time on trees of arguments; the lists of tensors here need none. Where this torch
lacks the inner functions, torch.vmap itself is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    from torch._C._functorch import (
        _add_batch_dim,
        _remove_batch_dim,
        _vmap_decrement_nesting,
        _vmap_increment_nesting,
    )
    from torch._functorch import vmap as _functorch_vmap

    _load_decompositions: Callable[[], None] = vars(_functorch_vmap)["lazy_load_decompositions"]
except (ImportError, KeyError):  # another version of torch
    _HAS_LEVELS = False
else:
    _HAS_LEVELS = True

Apply = Callable[[list[Tensor] | None, list[Tensor]], Any]


def map_batch(apply: Apply, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Any]:
    """`apply` on every element along axis 0; numbers among the results stay numbers.

    Raises whatever the body raises, also for control flow that depends on data and for random numbers.
    """
    return _map_by_levels(apply, state, input, batch) if _HAS_LEVELS else _map_by_torch(apply, state, input)


def _map_by_levels(apply: Apply, state: list[Tensor] | None, input: list[Tensor], batch: int) -> list[Any]:
    _load_decompositions()
    level = _vmap_increment_nesting(batch, "error")
    try:
        old = None if state is None else [_add_batch_dim(value, 0, level) for value in state]
        results = apply(old, [_add_batch_dim(value, 0, level) for value in input])
        return [_remove_batch_dim(value, level, batch, 0) if isinstance(value, Tensor) else value for value in results]
    finally:
        _vmap_decrement_nesting()


def _map_by_torch(apply: Apply, state: list[Tensor] | None, input: list[Tensor]) -> list[Any]:
    numbers: dict[int, Any] = {}

    def keep_tensors(old: list[Tensor] | None, new: list[Tensor]) -> list[Tensor]:
        results = list(apply(old, new))
        numbers.update({number: value for number, value in enumerate(results) if not isinstance(value, Tensor)})
        return [torch.zeros(()) if number in numbers else value for number, value in enumerate(results)]

    mapped = torch.vmap(keep_tensors, in_dims=(None if state is None else 0, 0))(state, input)
    return [numbers.get(number, value) for number, value in enumerate(mapped)]
