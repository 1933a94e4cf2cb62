"""Maps and the folds behind them: Map, Accum and Scan on whole batches.

A Map that feeds an Accum only and makes a lot is put off, and the Accum takes it in parts: a sum of products over
[M, N, K, D] never holds more than one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from opsmith.targets.step.execution.flow import Flow, zip_flows
from opsmith.targets.step.execution.scene import Scene
from opsmith.targets.step.execution.schedule import ScheduledStep
from opsmith.targets.step.execution.stack import StackedFn

PART = 1 << 17  # numbers: what a Map may make in one piece when an Accum waits for it; a megabyte stays in the cache
PIECE = 1 << 20  # ... and where nothing waits: what its function makes on the way is let go piece by piece


@dataclass(slots=True)
class Deferred:
    """A Map that is made in parts: its function and its operands, zipped."""

    fn: StackedFn
    operand: Flow

    @property
    def weight(self) -> int:
        """How many numbers it makes for an element, or reads, which are mostly repeated, if those are far more."""
        read = sum(math.prod(self.operand.element_axes(tensor)) for tensor in self.operand.tensors)
        return max(self.fn.made_count, read // 4)

    def make_part(self, operand: Flow) -> Flow:
        return _map_operand(self.fn, operand, operand.axes)

    def make_all(self) -> Flow:
        """All of it, piece by piece."""
        axes = self.operand.axes
        if self.weight * math.prod(axes) <= PIECE:
            return self.make_part(self.operand)
        return _make_by_parts(self.operand, len(axes), PIECE // self.weight, self.make_part)


def run_map(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> Sequence[Flow | Deferred]:
    fn, operand = scene.find_fn(step), zip_flows(operands)
    axes = operand.axes
    if operand.rows is None:
        count = fn.made_count * math.prod(axes)
        if count > PART and step.is_streamed:
            return [Deferred(fn, operand)]
        if count > PIECE or max(map(Tensor.numel, operand.tensors)) > PIECE:
            return [Deferred(fn, operand).make_all()]
    return [_map_operand(fn, operand, axes)]


def _map_operand(fn: StackedFn, operand: Flow, axes: tuple[int, ...]) -> Flow:
    return Flow(fn(None, operand.tensors, axes, operand.rows), operand.rank, operand.rows)


def run_accum(scene: Scene, step: ScheduledStep, operands: Sequence[Flow | Deferred]) -> list[Flow]:
    (operand,), fn, b = operands, scene.find_fn(step), step.ints[0]
    if isinstance(operand, Flow):
        return [_fold_states(fn, operand, b)]
    deferred, outer = operand, operand.operand.rank - b
    folded = math.prod(deferred.operand.axes[outer:])
    limit = PART // (deferred.weight * folded)
    return [
        _make_by_parts(deferred.operand, outer, limit, lambda piece: _fold_states(fn, deferred.make_part(piece), b))
    ]


def _make_by_parts(operand: Flow, outer: int, limit: int, make: Callable[[Flow], Flow]) -> Flow:
    """What `make` gives for an operand, of which the first `outer` axes stay, from parts of at most `limit` entries.

    All draws, the first axis, are in each part.
    """
    axes = operand.axes[:outer]
    merged: list[Tensor] = []
    for entries, index in operand.cut_axes(outer, max(1, limit // axes[0])):
        tensors = make(entries).tensors
        merged = merged or [tensor.new_empty((*axes, *tensor.shape[outer:])) for tensor in tensors]
        for tensor, piece in zip(merged, tensors, strict=True):
            tensor[index] = piece
    return Flow(merged, outer)


def _fold_states(fn: StackedFn, operand: Flow, b: int) -> Flow:
    """Reduce the `b` inner axes: the outer ones are a batch, the inner ones are taken in stream order."""
    tensors, outer, rows = _join_axes(operand, b), operand.rank - b, operand.rows
    axes = operand.axes[:outer]
    if fn.reduction is not None and tensors[0].shape[outer]:
        return Flow(fn.reduction.reduce_all(tensors, outer), outer, rows)
    state = fn.init_state(axes)
    for fields in zip(*(tensor.unbind(outer) for tensor in tensors), strict=True):
        state = fn(state, list(fields), axes, rows)
    return Flow(state, outer, rows)


def _join_axes(operand: Flow, b: int) -> list[Tensor]:
    """The `b` inner axes as one."""
    outer = operand.rank - b
    return operand.tensors if b == 1 else [tensor.flatten(outer, operand.rank - 1) for tensor in operand.tensors]


def run_scan(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    (operand,), fn, b = operands, scene.find_fn(step), step.ints[0]
    tensors, outer = _join_axes(operand, b), operand.rank - b
    if fn.reduction is not None and tensors[0].shape[outer]:
        states = fn.reduction.reduce_running(tensors, outer)
    else:
        states = _scan_states(fn, tensors, operand.axes[:outer], operand.rows)
    return [Flow(states, outer + 1, operand.rows).reshape_axes(operand.axes)]


def _scan_states(
    fn: StackedFn, tensors: list[Tensor], axes: tuple[int, ...], rows: Sequence[int] | None
) -> list[Tensor]:
    state, states = fn.init_state(axes), []
    for fields in zip(*(tensor.unbind(len(axes)) for tensor in tensors), strict=True):
        state = fn(state, list(fields), axes, rows)
        states.append(state)
    if not states:
        return [tensor.new_empty((*axes, 0, *tensor.shape[len(axes) :])) for tensor in state]
    return [torch.stack(column, dim=len(axes)) for column in zip(*states, strict=True)]
