"""What the kernels of one run share: the draws, what was routed where, and the form of a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from opsmith.records import Diagnostic
from opsmith.targets.step.execution.schedule import ScheduledStep
from opsmith.targets.step.execution.stack import Stack, StackedFn
from opsmith.targets.step.language.graph import OpNode


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
    routes: dict[int, Route]  # by the number of a Partition
    routes_by_index: dict[int, Route] = field(default_factory=dict)  # by the number of the index

    def find_fn(self, step: ScheduledStep) -> StackedFn:
        if step.fn is None:
            raise AssertionError(f"{step.op} without a fn")
        return self.stack.find_fn(step.fn.func_name)


def make_run_error(step: ScheduledStep | OpNode, actual: str, expected: str, remedy: str = "") -> RunError:
    return RunError(Diagnostic("RUN", step.op, actual, expected, remedy, step.line))
