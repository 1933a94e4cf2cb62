"""Kernels: what does each primitive do to the data of its operands? (reference sections 5 and 7)

A kernel takes a step and its operands' flows and gives its results' flows. Here are the primitives that change axes
only; functions are applied in `folds`, streams are routed in `routing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opsmith.targets.step.execution.flow import Flow, zipped
from opsmith.targets.step.execution.folds import Deferred, accum, map_, scan
from opsmith.targets.step.execution.routing import merge, partition
from opsmith.targets.step.execution.scene import Scene
from opsmith.targets.step.execution.schedule import Step

Kernel = Callable[[Scene, Step, Sequence[Any]], Sequence["Flow | Deferred"]]  # only Accum is handed a Deferred


def _zip(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    return [zipped(operands)]


def _promote(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    (operand,), b = operands, step.ints[0]
    axes, at = operand.axes, operand.rank - b
    return [operand.reshaped((*axes[:at], 1, *axes[at:]))]


def _flatten(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    axes, first, last = operand.axes, operand.rank - 1 - max(step.ints), operand.rank - min(step.ints)
    return [operand.reshaped((*axes[:first], math.prod(axes[first : last + 1]), *axes[last + 1 :]))]


def _reshape(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    if step.dim is None:
        raise AssertionError("Reshape without a size")
    inner = scene.stack.size(step.dim)
    split = {operand.rank - 1 - number for number in step.ints}
    axes = [
        part for at, axis in enumerate(operand.axes) for part in ([axis // inner, inner] if at in split else [axis])
    ]
    return [operand.reshaped(tuple(axes))]


def _repeat(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    if step.dim is None:
        raise AssertionError("Repeat without a number")
    return [_repeated(operands[0], scene.stack.size(step.dim))]


def _repeat_ref(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    operand, reference = operands
    return [_repeated(operand, reference.axes[-1])]


def _repeated(operand: Flow, times: int) -> Flow:
    axes, rank = (*operand.axes, times), operand.rank
    tensors = [tensor.unsqueeze(rank).expand(*axes, *tensor.shape[rank:]) for tensor in operand.tensors]
    return Flow(tensors, rank + 1, operand.rows)


def _bufferize(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    """The border between stream and element axes moves; the tensors stay. So for Streamify."""
    (operand,) = operands
    return [Flow(operand.tensors, operand.rank - step.ints[0], operand.rows)]


def _streamify(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    (operand,) = operands
    return [Flow(operand.tensors, operand.rank + step.ints[0], operand.rows)]


KERNELS: Mapping[str, Kernel] = {
    "Map": map_,
    "Zip": _zip,
    "Accum": accum,
    "Scan": scan,
    "Promote": _promote,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Repeat": _repeat,
    "RepeatRef": _repeat_ref,
    "Bufferize": _bufferize,
    "Streamify": _streamify,
    "Partition": partition,
    "Merge": merge,
}
