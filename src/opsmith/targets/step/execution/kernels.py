"""Kernels: what does each primitive do to the data of its operands? (reference sections 5 and 7)

A kernel takes a step and its operands' flows and gives its results' flows. Functions of the task are called on whole
batches (`fns`). A Map that feeds an Accum only and makes a lot is put off, and the Accum takes it in parts: a sum of
products over [M, N, K, D] never holds more than one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opsmith.records import Diagnostic
from opsmith.targets.step.execution.flow import Flow, scaled
from opsmith.targets.step.execution.schedule import Step
from opsmith.targets.step.execution.stack import Stack, StackedFn

PART = 1 << 17  # numbers: what a Map may make in one piece when an Accum waits for it; a megabyte stays in the cache


class RunError(Exception):
    """The candidate failed while running; `diagnostic` is a RUN finding."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


@dataclass
class Route:
    """One executed Partition: its index as [positions, N], and the positions that each expert received."""

    index: Tensor
    positions: list[Tensor]
    rows: list[list[int]]  # per expert, per draw


@dataclass
class Scene:
    """What the kernels of one run share."""

    stack: Stack
    routes: dict[int, Route]

    def fn(self, step: Step) -> StackedFn:
        if step.fn is None:
            raise AssertionError(f"{step.op} without a fn")
        return self.stack.fn(step.fn.func_name)


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


Kernel = Callable[[Scene, Step, Sequence[Any]], Sequence["Flow | Deferred"]]  # only Accum is handed a Deferred


def fault(step: Step, given: str, expected: str, remedy: str) -> RunError:
    return RunError(Diagnostic("RUN", step.op, given, expected, remedy, step.line))


def _zipped(operands: Sequence[Flow]) -> Flow:
    first = operands[0]
    if any(other.axes != first.axes for other in operands[1:]):
        raise AssertionError(f"streams of axes {[operand.axes for operand in operands]} side by side")
    return Flow([tensor for operand in operands for tensor in operand.tensors], first.rank, first.rows)


def _zip(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    return [_zipped(operands)]


def _map(scene: Scene, step: Step, operands: Sequence[Flow]) -> Sequence[Flow | Deferred]:
    deferred = Deferred(scene.fn(step), _zipped(operands))
    if step.is_streamed and deferred.operand.rows is None and deferred.numbers > PART:
        return [deferred]
    return [deferred.part(deferred.operand)]


# -------------------------------------------------------------------- reductions
def _accum(scene: Scene, step: Step, operands: Sequence[Flow | Deferred]) -> list[Flow]:
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


def _scan(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
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


# -------------------------------------------------------------------- shapes: axes change, entries and order do not
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


# -------------------------------------------------------------------- routing
def _partition(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    data, index = operands
    route = scene.routes[step.route] = _route(step, index, len(scene.stack))
    positions = len(route.index)
    flat = [tensor.reshape(positions, *tensor.shape[index.rank :]) for tensor in data.tensors]
    chosen = [[tensor.index_select(0, places) for tensor in flat] for places in route.positions]
    rank = data.rank - index.rank + 1
    if len(scene.stack) == 1:  # the one draw keeps its axis, so that nothing below is special
        return [Flow([tensor.unsqueeze(0) for tensor in tensors], rank + 1) for tensors in chosen]
    return [Flow(tensors, rank, rows) for tensors, rows in zip(chosen, route.rows, strict=True)]


def _route(step: Step, index: Flow, draws: int) -> Route:
    """Which positions each expert gets, all draws one after the other."""
    experts = index.tensors[0].shape[-1]
    positions = math.prod(index.axes)
    flat = index.tensors[0].reshape(positions, experts)
    rows = [positions // draws] * draws if index.rows is None else scaled(index.rows, index.axes[0], positions)
    lengths = list(rows or ())
    _check_index(step, flat, lengths)
    counts = torch.stack([part.sum(0) for part in flat.split_with_sizes(lengths)]).long().t().tolist()
    return Route(flat, [column.nonzero().squeeze(1) for column in flat.unbind(1)], counts)


def _check_index(step: Step, index: Tensor, lengths: Sequence[int]) -> None:
    wrong = (index != 0) & (index != 1)
    if wrong.any():
        position, expert = (int(i) for i in wrong.nonzero()[0])
        given = f"{index[position, expert].item():g} at index position ({_within(position, lengths)}), expert {expert}"
        raise fault(step, given, "0 or 1", "threshold the scores in the fn that makes the index")


def _within(position: int, lengths: Sequence[int]) -> int:
    """A position counted within its own draw."""
    for length in lengths:
        if position < length:
            break
        position -= length
    return position


def _merge(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
    *items, index = operands
    route, fn = scene.routes[step.route], scene.fn(step)
    if step.compare_index:
        _compare_index(step, index, route, len(scene.stack))
    routed = items if len(scene.stack) > 1 else [_without_draw(item) for item in items]
    inner = routed[0].axes[1:]
    state = fn.init_state((len(route.index), *inner))
    for item, positions, rows in zip(routed, route.positions, route.rows, strict=True):
        _merge_expert(fn, state, item, positions, rows)
    axes = (*index.axes, *inner)
    return [Flow([tensor.reshape(*axes, *tensor.shape[1 + len(inner) :]) for tensor in state], len(axes), index.rows)]


def _without_draw(item: Flow) -> Flow:
    return Flow([tensor.squeeze(0) for tensor in item.tensors], item.rank - 1)


def _merge_expert(fn: StackedFn, state: list[Tensor], item: Flow, positions: Tensor, rows: Sequence[int]) -> None:
    """Feed one expert's items into the states of the positions that selected it."""
    if not len(positions):
        return
    before = [tensor.index_select(0, positions) for tensor in state]
    for tensor, after in zip(state, fn(before, item.tensors, item.axes, rows), strict=True):
        tensor.index_copy_(0, positions, after)


def _compare_index(step: Step, index: Flow, route: Route, draws: int) -> None:
    different = (index.tensors[0].reshape(route.index.shape) != route.index).any(1)
    if different.any():
        position = int(different.nonzero()[0])
        lengths = [len(different) // draws] * draws if index.rows is None else index.rows
        given = f"an index that differs from Partition's at position ({_within(position, lengths)})"
        raise fault(step, given, "the same index", "Copy the index, use one half in each")


KERNELS: Mapping[str, Kernel] = {
    "Map": _map,
    "Zip": _zip,
    "Accum": _accum,
    "Scan": _scan,
    "Promote": _promote,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Repeat": _repeat,
    "RepeatRef": _repeat_ref,
    "Bufferize": _bufferize,
    "Streamify": _streamify,
    "Partition": _partition,
    "Merge": _merge,
}
