"""Routing: which positions does an expert get at a Partition, and how does a Merge take items back? (section 7)"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from opsmith.targets.step.execution.flow import Flow, scaled
from opsmith.targets.step.execution.scene import Route, Scene, fault
from opsmith.targets.step.execution.schedule import Step
from opsmith.targets.step.execution.stack import StackedFn


def partition(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
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


def merge(scene: Scene, step: Step, operands: Sequence[Flow]) -> list[Flow]:
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
