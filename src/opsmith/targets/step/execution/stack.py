"""Stacks: several draws of one size and one precision, executed at once.

Every static stream has the draws as its first axis (see `flow`). A fn that sees nothing of a draw takes all of them in
one call; one that reads parameters is called draw by draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Protocol

import torch
from torch import Tensor

from opsmith.problems.dims import Dim
from opsmith.targets.step.execution.fns import BatchedFn
from opsmith.targets.step.execution.forms import Axes
from opsmith.targets.step.execution.reductions import Reduction
from opsmith.targets.step.execution.slots import Slot
from opsmith.targets.step.language.types import StreamType, fields_of, inner_dims, tensor_shape

COUNTS_KEPT = 4096  # types whose elements are remembered
Sizes = Mapping[str, int]  # by symbol


class StackableDraw(Protocol):
    """What a run needs of one draw: sizes, input tensors by name, and the task's functions prepared for batches."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def input_data(self) -> Mapping[str, Tensor]: ...
    @property
    def fns(self) -> Mapping[str, BatchedFn]: ...
    @property
    def random_global(self) -> bool: ...


class StackedFn:
    """A fn on the draws of a stack."""

    def __init__(self, fns: Sequence[BatchedFn], random_global: bool) -> None:
        self._fns = fns
        self._is_shared = len(fns) == 1 or not (random_global or fns[0].reads_draw)

    @property
    def outputs(self) -> tuple[Slot, ...]:
        return self._fns[0].outputs

    @cached_property
    def made_count(self) -> int:
        """How many numbers it makes for an element."""
        return sum(math.prod(slot.shape) for slot in self.outputs)

    @property
    def reduction(self) -> Reduction | None:
        return self._fns[0].reduction

    @property
    def narrows(self) -> bool:
        return self._fns[0].narrows

    def init_state(self, axes: Axes) -> list[Tensor]:
        return self._fns[0].init_state(axes)

    def __call__(
        self, state: list[Tensor] | None, input: list[Tensor], axes: Axes, rows: Sequence[int] | None
    ) -> list[Tensor]:
        """As `BatchedFn`; `rows[i]` entries of axis 0 belong to draw i, one where there are no rows."""
        if self._is_shared:
            return self._fns[0](state, input, axes)
        lengths = [1] * len(self._fns) if rows is None else list(rows)
        states = [None] * len(lengths) if state is None else _split_by_draw(state, lengths)
        results = [
            fn(old, fields, (length, *axes[1:]))
            for fn, old, fields, length in zip(self._fns, states, _split_by_draw(input, lengths), lengths, strict=True)
        ]
        return [torch.cat(column) for column in zip(*results, strict=True)]


def _split_by_draw(tensors: Sequence[Tensor], lengths: list[int]) -> list[list[Tensor]]:
    return [list(fields) for fields in zip(*(tensor.split_with_sizes(lengths) for tensor in tensors), strict=True)]


class Stack:
    """The draws' inputs as tensors with the draws as first axis, their fns, and sizes of static dims."""

    def __init__(self, draws: Sequence[StackableDraw]) -> None:
        self._draws = draws
        self.sizes = dict(draws[0].sizes)
        self._fns: dict[str, StackedFn] = {}
        self._elements: dict[tuple[StreamType, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._draws)

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """[S, *reversed(dims), *element] by name."""
        if len(self) == 1:
            return {name: tensor.unsqueeze(0) for name, tensor in self._draws[0].input_data.items()}
        names = self._draws[0].input_data
        return {name: torch.stack([draw.input_data[name] for draw in self._draws]) for name in names}

    def find_fn(self, name: str) -> StackedFn:
        stacked = self._fns.get(name)
        if stacked is None:
            is_random = any(draw.random_global for draw in self._draws)
            stacked = self._fns[name] = StackedFn([draw.fns[name] for draw in self._draws], is_random)
        return stacked

    def evaluate_dim(self, dim: Dim) -> int:
        return dim.value(self.sizes)

    def count_elements(self, kind: StreamType, routed: Sizes | None = None) -> int:
        """How many numbers a stream carries in one draw. Raises DimError.

        `routed`: all sizes, those of dynamic symbols among them; needed where there are any.
        """
        lengths = tuple([routed[name] for name in _list_dynamic_symbols(kind)]) if routed is not None else ()
        count = self._elements.get((kind, lengths))
        if count is None:
            if len(self._elements) >= COUNTS_KEPT:
                self._elements.clear()
            count = self._elements[kind, lengths] = count_elements(kind, self.sizes if routed is None else routed)
        return count


@lru_cache(maxsize=COUNTS_KEPT)
def _list_dynamic_symbols(kind: StreamType) -> tuple[str, ...]:
    """The symbols of a type whose sizes a run decides, in order."""
    dims = (*kind.dims, *inner_dims(kind.dtype))
    return tuple(name for dim in dims if dim.is_dynamic for name, _ in dim.powers if name.startswith("?"))


def count_elements(kind: StreamType, sizes: Mapping[str, int]) -> int:
    """How many numbers a stream carries. Raises DimError where a dim has no whole value."""
    return sum(math.prod(tensor_shape(field, kind.dims, sizes)) for field in fields_of(kind.dtype))
