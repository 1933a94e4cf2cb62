"""Kernels: what each primitive does to the data of its operands.

A kernel takes a step and its operands' flows and gives its results' flows. Here are the primitives that change axes
only; functions are applied in `folds`, streams are routed in `routing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opsmith.targets.step.execution.flow import Flow, zip_flows
from opsmith.targets.step.execution.folds import Deferred, run_accum, run_map, run_scan
from opsmith.targets.step.execution.routing import merge_streams, route_streams
from opsmith.targets.step.execution.scene import Scene
from opsmith.targets.step.execution.schedule import ScheduledStep

Kernel = Callable[[Scene, ScheduledStep, Sequence[Any]], Sequence["Flow | Deferred"]]  # only Accum is handed a Deferred


def _zip_streams(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    return [zip_flows(operands)]


def _promote_axis(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    (operand,), b = operands, step.ints[0]
    axes, place = operand.axes, operand.rank - b
    return [operand.reshape_axes((*axes[:place], 1, *axes[place:]))]


def _flatten_axes(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    axes, first, last = operand.axes, operand.rank - 1 - max(step.ints), operand.rank - min(step.ints)
    return [operand.reshape_axes((*axes[:first], math.prod(axes[first : last + 1]), *axes[last + 1 :]))]


def _split_axes(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    if step.dim is None:
        raise AssertionError("Reshape without a size")
    inner = scene.stack.evaluate_dim(step.dim)
    split = {operand.rank - 1 - number for number in step.ints}
    axes = [
        length
        for place, axis in enumerate(operand.axes)
        for length in ([axis // inner, inner] if place in split else [axis])
    ]
    return [operand.reshape_axes(tuple(axes))]


def _repeat_times(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    if step.dim is None:
        raise AssertionError("Repeat without a number")
    return [_expand_axis(operands[0], scene.stack.evaluate_dim(step.dim))]


def _repeat_like(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    operand, reference = operands
    return [_expand_axis(operand, reference.axes[-1])]


def _expand_axis(operand: Flow, times: int) -> Flow:
    axes, rank = (*operand.axes, times), operand.rank
    tensors = [tensor.unsqueeze(rank).expand(*axes, *tensor.shape[rank:]) for tensor in operand.tensors]
    return Flow(tensors, rank + 1, operand.rows)


def _bufferize_axes(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    """The border between stream and element axes moves; the tensors stay. So for Streamify."""
    (operand,) = operands
    return [Flow(operand.tensors, operand.rank - step.ints[0], operand.rows)]


def _streamify_axes(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    return [Flow(operand.tensors, operand.rank + step.ints[0], operand.rows)]


VIEWS = frozenset(
    ("Zip", "Copy", "Identity", "Repeat", "RepeatRef", "Bufferize", "Streamify")
)  # whatever they are given

KERNELS: Mapping[str, Kernel] = {
    "Map": run_map,
    "Zip": _zip_streams,
    "Accum": run_accum,
    "Scan": run_scan,
    "Promote": _promote_axis,
    "Flatten": _flatten_axes,
    "Reshape": _split_axes,
    "Repeat": _repeat_times,
    "RepeatRef": _repeat_like,
    "Bufferize": _bufferize_axes,
    "Streamify": _streamify_axes,
    "Partition": route_streams,
    "Merge": merge_streams,
}
