"""Bound draws: a draw's data with the task's functions, prepared for batches on first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.drawing import draw_data
from opsmith.targets.step.execution.fns import BatchedFn, FnTable, Plans
from opsmith.targets.step.language.spec import TaskSpec


@dataclass(frozen=True)
class BoundDraw:
    """Everything that a run needs besides the program."""

    sizes: Mapping[str, int]  # symbol -> size
    input_data: Mapping[str, Tensor]  # inputs and parameters by name; never written
    namespace: dict[str, Any]  # what authors' code sees
    wide: bool  # all floats are float64
    random_global: bool  # `global` drew numbers
    fns: Mapping[str, BatchedFn]  # func_name -> BatchedFn, prepared on first use


def bind_fns(spec: TaskSpec, data: Bindings, plans: Plans | None = None) -> BoundDraw:
    """The functions of a task on one draw. `plans` is what is known of them, and grows by use."""
    fns = FnTable(spec, data.sizes, data.namespace, data.wide, {} if plans is None else plans)
    return BoundDraw(data.sizes, data.input_data, data.namespace, data.wide, data.random_global, fns)


def draw_bound(spec: TaskSpec, overrides: Mapping[str, int], seed: int) -> BoundDraw:
    """The data of one seed in the declared precision, with functions of which nothing is known. Raises TaskFault."""
    return bind_fns(spec, draw_data(spec.problem, overrides, seed))
