"""Maps and the folds behind them: Map, Accum and Scan on whole batches. (reference sections 5 and 7)

A Map that feeds an Accum only and makes a lot is put off, and the Accum takes it in parts: a sum of products over
[M, N, K, D] never holds more than one part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from opsmith.targets.step.execution.flow import Flow, zipped
from opsmith.targets.step.execution.scene import Scene
from opsmith.targets.step.execution.schedule import Step
from opsmith.targets.step.execution.stack import StackedFn

PART = 1 << 17  # numbers: what a Map may make in one piece when an Accum waits for it; a megabyte stays in the cache


@dataclass(slots=True)
class Deferred:
    """A Map that was put off: its function and its operands, zipped."""

    fn: StackedFn
    operand: Flow

    @property
    def numbers(self) -> int:
        """How many it would make."""
        return sum(math.prod(slot.shape) for slot in self.fn.outputs) * math.prod(self.operand.axes)

    def part(self, operand: Flow) -> Flow:
        tensors = self.fn(None, operand.tensors, operand.axes, operand.rows)
        return Flow(tensors, operand.rank, operand.rows)


def map_(scene: Scene, step: Step, operands: Sequence[Flow]) -> Sequence[Flow | Deferred]:
    deferred = Deferred(scene.fn(step), zipped(operands))
    if step.is_streamed and deferred.operand.rows is None and deferred.numbers > PART:
        return [deferred]
    return [deferred.part(deferred.operand)]


def accum(scene: Scene, step: Step, operands: Sequence[Flow | Deferred]) -> list[Flow]:
    (operand,), fn, b = operands, scene.fn(step), step.ints[0]
    if isinstance(operand, Flow):
        return [_last_states(fn, operand, b)]
    axis, length = _parts(operand, b)
    parts = [_last_states(fn, operand.part(part), b) for part in operand.operand.split(axis, length)]
    columns = zip(*(part.tensors for part in parts), strict=True)
    return [Flow([torch.cat(column, axis) for column in columns], parts[0].rank)]


def _parts(deferred: Deferred, b: int) -> tuple[int, int]:
    """An outer axis other than the draws', and how long a part may be there."""
    axes = deferred.operand.axes
    axis = next((at for at in range(1, len(axes) - b) if axes[at] > 1), 0)
    return axis, max(1, PART * axes[axis] // deferred.numbers) if axis else axes[0]


def _last_states(fn: StackedFn, operand: Flow, b: int) -> Flow:
    """Reduce the `b` inner axes: the outer ones are a batch, the inner ones are taken in stream order."""
    tensors, kept, rows = _in_order(operand, b), operand.rank - b, operand.rows
    axes = operand.axes[:kept]
    if fn.reduction is not None and tensors[0].shape[kept]:
        return Flow(fn.reduction.all(tensors, kept), kept, rows)
    state = fn.init_state(axes)
    for fields in zip(*(tensor.unbind(kept) for tensor in tensors), strict=True):
        state = fn(state, list(fields), axes, rows)
    return Flow(state, kept, rows)


def _in_order(operand: Flow, b: int) -> list[Tensor]:
    """The `b` inner axes as one."""
    kept = operand.rank - b
    return operand.tensors if b == 1 else [tensor.flatten(kept, operand.rank - 1) for tensor in operand.tensors]


def scan(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    (operand,), fn, b = operands, scene.fn(step), step.ints[0]
    tensors, kept = _in_order(operand, b), operand.rank - b
    if fn.reduction is not None and tensors[0].shape[kept]:
        made = fn.reduction.running(tensors, kept)
    else:
        made = _states(fn, tensors, operand.axes[:kept], operand.rows)
    return [Flow(made, kept + 1, operand.rows).reshaped(operand.axes)]


def _states(fn: StackedFn, tensors: list[Tensor], axes: tuple[int, ...], rows: Sequence[int] | None) -> list[Tensor]:
    state, states = fn.init_state(axes), []
    for fields in zip(*(tensor.unbind(len(axes)) for tensor in tensors), strict=True):
        state = fn(state, list(fields), axes, rows)
        states.append(state)
    if not states:
        return [tensor.new_empty((*axes, 0, *tensor.shape[len(axes) :])) for tensor in state]
    return [torch.stack(column, dim=len(axes)) for column in zip(*states, strict=True)]
