"""Trials of a native task: draws in the declared types, as a program is given them and as it is judged on them.

Imports torch: in a task's worker only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.data import ShapeSet
from opsmith.problems.draws import TrialData, name_precision
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.faults import make_fault
from opsmith.problems.native import NativeData, NativeDraw
from opsmith.problems.precision import dtype_of
from opsmith.problems.problem import ArrayType, Problem
from opsmith.records import Level, Scrutiny
from opsmith.running.arena import CAPACITY
from opsmith.targets.hidden import OTHER_DATA
from opsmith.targets.native.layout import DrawLayout, TrialLayout, write_inputs
from opsmith.targets.native.signature import list_dims
from opsmith.targets.native.task import (
    OptionsReader,
    TaskOptions,
    read_known_options,
    read_task_problem,
    split_native_task,
)
from opsmith.targets.trial import Trial

TASKS_IN_MEMORY = 16
_KINDS_IN_MEMORY = 2  # of scrutiny: a run has one secret and two levels
_MOST_NUMBERS = CAPACITY // 64  # of a trial, each of 8 bytes and written by every pass
_MARGIN = 1 << 16  # bytes beside arrays: headers and alignment


@dataclass
class NativeTrialData(TrialData[NativeDraw]):
    """Draws that a program is given together."""

    options: TaskOptions
    seed: str = ""  # what surroundings are drawn from
    is_full: bool = False  # the program is to be kept

    @property
    def problem(self) -> Problem:
        return self.draws[0].problem

    @cached_property
    def layout(self) -> TrialLayout:
        """Raises TaskFault, also where arrays are larger than what a process can be given."""
        draws = tuple(_make_layout(draw.problem, draw.declared) for draw in self.draws)
        layout = TrialLayout(draws, self.options.threads, seed=self.seed)
        if self.is_full:
            full = replace(layout, passes=self.options.full_passes)
            layout = full if full.outputs_size * len(full.passes) + _MARGIN <= CAPACITY else layout
        passes = len(layout.passes)
        size = max(sum(sum(draw.inputs) for draw in draws), layout.outputs_size * passes) + _MARGIN
        if size > CAPACITY:
            expected = f"at most {CAPACITY} for all inputs, and for outputs of {passes} calls"
            raise make_fault("TASK", self.label(0), f"arrays of {size} bytes", expected, "smaller sizes in `shapes`")
        return layout

    @cached_property
    def encoded_inputs(self) -> bytes:
        """What a candidate's process is given. Raises TaskFault."""
        tensors = ((bindings, tensor) for bindings in self.bindings for tensor in self.problem.tensors)
        arrays = (encode_tensor(bindings.input_data[tensor.name], tensor.type) for bindings, tensor in tensors)
        return write_inputs(self.layout, arrays)

    def label(self, number: int) -> str:
        return self.draws[number].label


def _make_layout(problem: Problem, bindings: Bindings) -> DrawLayout:
    sizes = bindings.sizes
    outputs = (type_ for output in problem.outputs for type_ in output.types)
    return DrawLayout(
        tuple(_count_bytes(tensor.type, sizes) for tensor in problem.tensors),
        tuple(_count_bytes(type_, sizes) for type_ in outputs),
        (*(sizes[name] for name in list_dims(problem)), *problem.scalars.values()),
    )


def _count_bytes(type_: ArrayType, sizes: Mapping[str, int]) -> int:
    return BYTES_BY_DTYPE[type_.dtype] * prod(type_.shape_at(sizes))


def encode_tensor(tensor: Tensor, type_: ArrayType) -> memoryview:
    """Its numbers in the declared type, row by row."""
    numbers = tensor.detach().to(dtype_of(type_.dtype)).contiguous().reshape(-1)
    return numbers.view(torch.uint8).numpy().data


@dataclass(frozen=True)
class NativeTrial(Trial):
    """A trial at a shape set of the file, at hidden sizes, or on other data."""

    shape_set: ShapeSet[NativeDraw] | None = field(default=None, kw_only=True, repr=False, compare=False)
    scrutinised: dict[Scrutiny, NativeTrialData] = field(default_factory=dict, kw_only=True, repr=False, compare=False)

    def left_out(self) -> str:
        return self.shape_set.explain_left_out() if self.shape_set is not None else ""

    def scrutinise(self, scrutiny: Scrutiny) -> NativeTrial:
        """Of a few kinds of scrutiny what was prepared stays."""
        if scrutiny not in self.scrutinised:
            while len(self.scrutinised) >= _KINDS_IN_MEMORY:
                self.scrutinised.pop(next(iter(self.scrutinised)))
            seed = str(scrutiny.draw_number("surroundings", self.name))
            is_full = scrutiny.level is Level.FULL and self.shape_set is not None  # hidden draws are many
            self.scrutinised[scrutiny] = replace(self.data, seed=seed, is_full=is_full)
        return replace(self, data=self.scrutinised[scrutiny])


@dataclass
class NativeTrials:
    """All trials of one task, and those that it does not state."""

    data: NativeData
    options: TaskOptions
    trials: Sequence[NativeTrial] = ()

    def __post_init__(self) -> None:
        self.trials = [
            self._make_trial(planned.name.removesuffix(f" {name_precision(False)}"), draws, planned.shape_set)
            for planned in self.data.plan_trials()
            for draws in self._split_equal(planned.draws, planned.shape_set.overrides)
        ]

    def _split_equal(self, draws: Sequence[NativeDraw], overrides: Mapping[str, int]) -> Iterator[Sequence[NativeDraw]]:
        """As many draws of these sizes at once as a process can be given."""
        count = max(1, _MOST_NUMBERS // self.data.problem.count_numbers({**self.data.problem.base_sizes, **overrides}))
        for start in range(0, len(draws), count):
            yield draws[start : start + count]

    def _make_trial(
        self, name: str, draws: Sequence[NativeDraw], shape_set: ShapeSet[NativeDraw] | None = None
    ) -> NativeTrial:
        data = NativeTrialData(draws, False, self.options)
        return NativeTrial(name, data, len(draws), shape_set=shape_set)

    def draw_hidden(self, scrutiny: Scrutiny) -> Iterator[Trial]:
        """Trials at hidden sizes, and on data of other distributions. Raises TaskFault for lack of memory."""
        for draw in self.data.draw_hidden(scrutiny):
            yield self._make_trial(draw.label, [draw])
        for group in self.data.draw_shaped(scrutiny):
            for draws in self._split_equal(group, group[0].overrides):
                yield self._make_trial(f"{OTHER_DATA} at {group[0].shape_set}", draws)


@lru_cache(maxsize=TASKS_IN_MEMORY)
def make_trials(text: str, read: OptionsReader = read_known_options) -> NativeTrials:
    """Those of a task's text, for the tasks used last; `read`: the options of its language, if it is known.

    Raises TaskError, UsageError and TaskFault.
    """
    return NativeTrials(NativeData(read_task_problem(text)), read(split_native_task(text)[1]))
