"""Reductions: the stateful fns that torch computes in one call over a whole axis.

A fn whose every entry is `state[i] + input[j]`, or torch.maximum or torch.minimum of the two, over floats of 32 or 64
bits of the state's own layout. Another order of summation moves the result by rounding only, which every tolerance
covers; a largest or smallest entry has no order, and both forms hand NaN on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opsmith.targets.step.execution.slots import Slot

_WIDE = (torch.float32, torch.float64)  # half precision overflows on the way to a sum that it can hold

_ALL: Mapping[Any, Callable[..., Tensor]] = {
    torch.add: torch.sum,
    torch.maximum: torch.amax,
    torch.minimum: torch.amin,
}
_RUNNING: Mapping[Any, Callable[..., Tensor]] = {
    torch.add: torch.cumsum,
    torch.maximum: lambda tensor, axis: tensor.cummax(axis).values,
    torch.minimum: lambda tensor, axis: tensor.cummin(axis).values,
}


@dataclass(frozen=True)
class Reduction:
    """Per field of the state: the function of two tensors, the field of the input, and the start value."""

    entries: tuple[tuple[Any, int, float], ...]

    def reduce_all(self, input: Sequence[Tensor], axis: int) -> list[Tensor]:
        """The last states: `axis` is reduced."""
        return [_apply_start(join, _ALL[join](input[number], axis), start) for join, number, start in self.entries]

    def reduce_running(self, input: Sequence[Tensor], axis: int) -> list[Tensor]:
        """The state after each entry of `axis`."""
        return [_apply_start(join, _RUNNING[join](input[number], axis), start) for join, number, start in self.entries]


def _apply_start(join: Any, reduced: Tensor, start: float) -> Tensor:
    if join is torch.add:
        return reduced + start if start else reduced
    return join(reduced, torch.tensor(start, dtype=reduced.dtype))  # type: ignore[no-any-return]


def find_reduction(
    tree: ast.FunctionDef,
    namespace: Mapping[str, Any],
    init: Sequence[float] | None,
    inputs: Sequence[Slot],
    outputs: Sequence[Slot],
) -> Reduction | None:
    """The reduction that a fn's body is, or None."""
    match tree.body:
        case [ast.Return(value=ast.List(elts=values) | ast.Tuple(elts=values))] if init is not None:
            if namespace.get("torch") is not torch or len(values) != len(outputs) or len(init) != len(outputs):
                return None
            read = [_read_entry(value, number, inputs, outputs) for number, value in enumerate(values)]
            entries = [(*entry, start) for entry, start in zip(read, init, strict=True) if entry is not None]
            return Reduction(tuple(entries)) if len(entries) == len(read) else None
    return None


def _read_entry(
    value: ast.expr, number: int, inputs: Sequence[Slot], outputs: Sequence[Slot]
) -> tuple[Any, int] | None:
    join, operands = _read_operator(value)
    fields = [_read_field(operand) for operand in operands]
    inputs_read = [number for name, number in fields if name == "input"]
    if (
        join is None
        or ("state", number) not in fields
        or len(inputs_read) != 1
        or not 0 <= inputs_read[0] < len(inputs)
    ):
        return None
    operand, state = inputs[inputs_read[0]], outputs[number]
    fits = operand.shape == state.shape and operand.dtype == state.dtype and state.dtype in _WIDE
    return (join, inputs_read[0]) if fits else None


def _read_operator(value: ast.expr) -> tuple[Any, list[ast.expr]]:
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return torch.add, [left, right]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[left, right], keywords=[]):
            functions = {"add": torch.add, "maximum": torch.maximum, "minimum": torch.minimum}
            functions |= {"max": torch.maximum, "min": torch.minimum}  # of two tensors
            return functions.get(name), [left, right]
    return None, []


def _read_field(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(number))):
            return name, number
    return "", -1
