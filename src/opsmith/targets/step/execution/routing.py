"""Routing: the positions that each expert gets at a Partition, and how a Merge takes their items back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from opsmith.targets.step.execution.flow import Flow, scale_rows
from opsmith.targets.step.execution.scene import Route, Scene, make_run_error
from opsmith.targets.step.execution.schedule import ScheduledStep
from opsmith.targets.step.execution.stack import StackedFn


def route_streams(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    *routed, index = operands
    route = scene.routes[step.route] = _find_route(scene, step, index)
    if not routed:
        return [Flow([], 1)] * len(step.results)  # nobody reads them: the index was all that mattered
    (data,), positions = routed, len(route.index)
    flat = [tensor.reshape(positions, *tensor.shape[index.rank :]) for tensor in data.tensors]
    chosen = [[tensor.index_select(0, places) for tensor in flat] for places in route.positions]
    rank = data.rank - index.rank + 1
    if len(scene.stack) == 1:  # the one draw keeps its axis, so that nothing below is special
        return [Flow([tensor.unsqueeze(0) for tensor in tensors], rank + 1) for tensors in chosen]
    return [Flow(tensors, rank, rows) for tensors, rows in zip(chosen, route.rows, strict=True)]


def _find_route(scene: Scene, step: ScheduledStep, index: Flow) -> Route:
    """What the index says; Partitions of one index share it."""
    number = step.operands[-1]
    if number not in scene.routes_by_index:
        scene.routes_by_index[number] = _read_route(step, index, len(scene.stack))
    return scene.routes_by_index[number]


def _read_route(step: ScheduledStep, index: Flow, draws: int) -> Route:
    """Which positions each expert gets, all draws one after the other."""
    experts = index.tensors[0].shape[-1]
    positions = math.prod(index.axes)
    flat = index.tensors[0].reshape(positions, experts)
    rows = [positions // draws] * draws if index.rows is None else scale_rows(index.rows, index.axes[0], positions)
    lengths = list(rows or ())
    _check_index(step, flat, lengths)
    counts = torch.stack([rows_of_draw.sum(0) for rows_of_draw in flat.split_with_sizes(lengths)]).long().t().tolist()
    return Route(flat, [column.nonzero().squeeze(1) for column in flat.unbind(1)], counts)


def _check_index(step: ScheduledStep, index: Tensor, lengths: Sequence[int]) -> None:
    wrong = (index != 0) & (index != 1)
    if wrong.any():
        position, expert = (int(i) for i in wrong.nonzero()[0])
        place = f"index position ({_count_within(position, lengths)}), expert {expert}"
        actual = f"{index[position, expert].item():g} at {place}"
        raise make_run_error(step, actual, "0 or 1", "threshold the scores in the fn that makes the index")


def _count_within(position: int, lengths: Sequence[int]) -> int:
    """A position counted within its own draw."""
    for length in lengths:
        if position < length:
            break
        position -= length
    return position


def merge_streams(scene: Scene, step: ScheduledStep, operands: Sequence[Flow]) -> list[Flow]:
    *items, index = operands
    route, fn = scene.routes[step.route], scene.find_fn(step)
    if step.compare_index:
        _compare_index(step, index, route, len(scene.stack))
    routed = (
        items
        if len(scene.stack) > 1
        else [Flow([tensor.squeeze(0) for tensor in stream.tensors], stream.rank - 1) for stream in items]
    )
    inner = routed[0].axes[1:]
    state = fn.init_state((len(route.index), *inner))
    for stream, positions, rows in zip(routed, route.positions, route.rows, strict=True):
        _merge_expert(fn, state, stream, positions, rows)
    axes = (*index.axes, *inner)
    return [Flow([tensor.reshape(*axes, *tensor.shape[1 + len(inner) :]) for tensor in state], len(axes), index.rows)]


def _merge_expert(fn: StackedFn, state: list[Tensor], stream: Flow, positions: Tensor, rows: Sequence[int]) -> None:
    """Feed one expert's items into the states of the positions that selected it."""
    if not len(positions):
        return
    before = [tensor.index_select(0, positions) for tensor in state]
    for tensor, after in zip(state, fn(before, stream.tensors, stream.axes, rows), strict=True):
        tensor.index_copy_(0, positions, after)


def _compare_index(step: ScheduledStep, index: Flow, route: Route, draws: int) -> None:
    different = (index.tensors[0].reshape(route.index.shape) != route.index).any(1)
    if different.any():
        position = int(different.nonzero()[0])
        lengths = [len(different) // draws] * draws if index.rows is None else index.rows
        actual = f"an index that differs from Partition's at position ({_count_within(position, lengths)})"
        raise make_run_error(step, actual, "the same index", "Copy the index, use one half in each")
