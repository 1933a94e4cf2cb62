"""Intermediates: the values that a reference computes on its way, in order, and which of them a wrong program lacks.

A value is known by its distinct numbers: order and repetition of entries do not count, so that a program may hold it in
any layout. Decisions and the like, of few distinct numbers, are left out: anything may hold them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from opsmith.problems.authored import find_line
from opsmith.problems.draws import Draw
from opsmith.problems.faults import TaskFault
from opsmith.problems.reference import clone_names, label_texts, run_reference
from opsmith.problems.tolerance import array_of

if TYPE_CHECKING:
    from opsmith.problems.tolerance import Array

MOST_VALUES = 128
LARGEST = 1 << 14  # numbers of a value, or of a stream, that is looked at
FEW = 4  # distinct numbers, or more, are no accident
LOOKED_AT = 32  # numbers of a stream whose ends are those of a value
SAME = 1e-8  # of the largest number: how far equal ones may lie from each other


@dataclass(frozen=True, eq=False)
class Intermediate:
    """A value on the way to what a reference gives."""

    number: int  # from 1
    name: str  # `sqrt of add`
    line: int  # of the author's text
    text: str  # that line
    numbers: Array  # the distinct ones, in order
    sources: Set[int]  # the numbers of the values that it is computed from

    @cached_property
    def slack(self) -> float:
        return SAME * float(np.abs(self.numbers[[0, -1]]).max())

    def has_all(self, numbers: Array) -> bool:
        """Whether all of these are among its own."""
        after = self.numbers.searchsorted(numbers).clip(1, self.numbers.size - 1)
        return bool((np.abs(self.numbers[[after - 1, after]] - numbers).min(0) <= self.slack).all())

    def is_same(self, distinct: Array) -> bool:
        """Whether these are its distinct numbers."""
        return bool((np.abs(distinct[[0, -1]] - self.numbers[[0, -1]]) <= self.slack).all()) and self.has_all(distinct)


@dataclass(frozen=True, eq=False)
class Intermediates:
    """The values of one draw in the order in which they are computed, without inputs."""

    values: tuple[Intermediate, ...]

    @cached_property
    def _ends(self) -> tuple[Array, Array, Array]:
        """The least and the largest number of each value, and how far others may lie from them."""
        ends = np.array([[value.numbers[0], value.numbers[-1], value.slack] for value in self.values])
        return ends[:, 0], ends[:, 1], ends[:, 2]

    def find_held(self, table: Array, is_part: bool) -> Iterator[tuple[int, int]]:
        """The rows of numbers that are those of a value, or a part of them, each with the value's number."""
        if not self.values or not table.size:
            return
        lows, highs, slacks = self._ends
        below, above = table.min(1)[:, None] - lows, highs - table.max(1)[:, None]
        fits = (below >= -slacks) & (above >= -slacks)
        if not is_part:
            fits &= (below <= slacks) & (above <= slacks)
        for row, place in zip(*(places.tolist() for places in fits.nonzero()), strict=True):
            if self.values[place].has_all(table[row, :: 1 + table.shape[1] // LOOKED_AT]):
                yield row, place + 1

    def find_missing(self, held: Set[int]) -> Intermediate | None:
        """The first value that is not held, and that no held one is computed from."""
        reached = frozenset(held).union(*(self.values[number - 1].sources for number in held))
        return next((value for value in self.values if value.number not in reached), None)


def compute_intermediates(draw: Draw) -> Intermediates:
    """The values of a draw in float64; none where the author's code cannot be watched."""
    names = clone_names(draw.wide)
    watcher = _Watcher(label_texts(draw.problem), names["input_data"])
    try:
        with watcher:
            run_reference(draw.problem, draw.wide, names)
    except TaskFault:
        return Intermediates(())
    return Intermediates(tuple(watcher.values))


def _list_distinct(tensor: Tensor) -> Array:
    """The distinct numbers in order; none where one is not finite."""
    numbers = array_of(tensor)
    return np.unique(numbers) if np.isfinite(numbers).all() else numbers[:0]


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    result = centred / torch.sqrt(torch.square(centred).mean(axes, keepdim=True) + eps)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    squares = torch.square(x).mean(tuple(range(-len(shape), 0)), keepdim=True)
    result = x / torch.sqrt(squares + (torch.finfo(x.dtype).eps if eps is None else eps))
    return result if weight is None else result * weight


_STEPS: Mapping[Any, Callable[..., Tensor]] = {  # what functions of several steps do
    torch.nn.functional.layer_norm: _layer_norm,
    torch.nn.functional.rms_norm: _rms_norm,
}

_MOVING = ("stack", "cat")


@dataclass(frozen=True)
class _Origin:
    """What is known of a tensor, which is held so that its id stays its own."""

    tensor: Tensor
    name: str
    sources: frozenset[int] = frozenset()  # the numbers of the values that it holds or is computed from


class _Watcher(TorchFunctionMode):
    """Records what the calls of torch in the texts of a reference give."""

    def __init__(self, texts: Mapping[str, str], inputs: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.values: list[Intermediate] = []
        self._texts = {f"<{label}>": text for label, text in texts.items()}
        self._origins = {id(tensor): _Origin(tensor, name) for name, tensor in inputs.items()}
        self._inputs = [
            Intermediate(0, name, 0, "", _list_distinct(tensor), frozenset())
            for name, tensor in inputs.items()
            if tensor.numel() <= LARGEST
        ]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _STEPS:
            with self:
                return _STEPS[func](*args, **kwargs)
        result = func(*args, **kwargs)
        changed = args[0] if result is None and args else result
        for tensor in changed if isinstance(changed, (tuple, list)) else (changed,):
            if isinstance(tensor, Tensor):
                self._add_tensor(tensor, func.__name__.strip("_"), [*args, *kwargs.values()])
        return result

    def _add_tensor(self, tensor: Tensor, function: str, arguments: Sequence[Any]) -> None:
        """Note where a tensor comes from and, where its numbers are new, the value that it holds.

        What depends on no input, a decision, and what only moves numbers is no value.
        """
        origins = list(self._find_origins(arguments))
        if not origins:
            return
        sources = frozenset[int]().union(*(origin.sources for origin in origins))
        viewed = next(
            (origin for origin in origins if origin.tensor is not tensor and _share(origin.tensor, tensor)), None
        )
        if viewed is not None:
            function = viewed.name
        elif tensor.is_floating_point() and tensor.numel() <= LARGEST and function not in _MOVING:
            numbers = [f"{word:g}" for word in arguments if type(word) is float]
            names = " and ".join(dict.fromkeys([*(origin.name for origin in origins), *numbers]))
            value = self._find_value(tensor, f"{function} of {names}", sources)
            sources |= {value.number} if value is not None else frozenset()
        self._origins[id(tensor)] = _Origin(tensor, function, sources)

    def _find_origins(self, arguments: Iterable[Any]) -> Iterator[_Origin]:
        for argument in arguments:
            if isinstance(argument, (tuple, list)):
                yield from self._find_origins(argument)
            elif id(argument) in self._origins:
                yield self._origins[id(argument)]

    def _find_value(self, tensor: Tensor, name: str, sources: frozenset[int]) -> Intermediate | None:
        """The value with the numbers of a tensor, a new one if need be; None: an input, or too few numbers."""
        distinct = _list_distinct(tensor)
        if distinct.size < FEW or any(known.is_same(distinct) for known in self._inputs if known.numbers.size >= FEW):
            return None
        known = next((known for known in self.values if known.is_same(distinct)), None)
        if known is not None or len(self.values) == MOST_VALUES:
            return known
        frame = sys._getframe()
        while frame.f_code.co_filename not in self._texts:
            if frame.f_back is None:  # a check of ours
                return None
            frame = frame.f_back
        text = find_line(self._texts[frame.f_code.co_filename], frame.f_lineno)
        self.values.append(Intermediate(len(self.values) + 1, name, frame.f_lineno, text, distinct, sources))
        return self.values[-1]


def _share(first: Tensor, second: Tensor) -> bool:
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
