"""The functional simulator: the tensors that checked programs of one task compute.

A batch of programs is executed as one graph (`schedule`), all draws of a stack at once (`stack`). What fails, fails for
the programs that have it only. Tensors are dropped after their last use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from opsmith.targets.step.execution.bounds import count_streamed
from opsmith.targets.step.execution.flow import Flow
from opsmith.targets.step.execution.folds import Deferred
from opsmith.targets.step.execution.kernels import KERNELS
from opsmith.targets.step.execution.scene import RunError, Scene
from opsmith.targets.step.execution.schedule import Batch, ScheduledProgram, ScheduledStep, schedule_programs
from opsmith.targets.step.execution.stack import Stack, StackableDraw
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.trial import TaskFault

__all__ = ["RunError", "StackableDraw", "execute_batch", "execute_program"]

Data = list[Tensor]
Outputs = list[Data]  # per output, per field, with the draws as first axis


def execute_program(graph: Graph, bindings: StackableDraw, io_elements: int) -> list[Data]:
    """The tensors of every returned stream of one program on one draw, one per field: [*reversed(dims), *element].

    Units   io_elements: elements of inputs, parameters and outputs together; bounds the work, the same on every machine
    Errors  RunError for what a candidate did at run time; TaskFault from a function of the task
    """
    stack = Stack([bindings])
    count_streamed(graph, stack, io_elements)
    (outputs,) = execute_batch([graph], stack)
    if isinstance(outputs, Exception):
        raise outputs
    return [[tensor.squeeze(0) for tensor in fields] for fields in outputs]


def execute_batch(
    graphs: Sequence[Graph], stack: Stack, with_unread: bool = False
) -> list[Outputs | RunError | TaskFault]:
    """What each program returns on the draws of a stack, or why it does not. `with_unread`: what no output depends on
    is executed too."""
    run = run_batch(graphs, stack, with_unread=with_unread)
    return [run.read_outcome(member) for member in run.batch.members]


def run_batch(graphs: Sequence[Graph], stack: Stack, keeps: bool = False, with_unread: bool = False) -> BatchRun:
    """The programs executed on the draws of a stack; `keeps`: every stream is there afterwards."""
    batch = schedule_programs(tuple(graphs), with_unread)
    run = BatchRun(batch, Scene(stack, {}), keeps)
    with torch.no_grad():
        for step in batch.steps:
            run.perform_step(step)
    return run


@dataclass
class BatchRun:
    """`flows` is by value number; `left` counts the reads still to come; `failed` is by the step's first result."""

    batch: Batch
    scene: Scene
    keeps: bool
    flows: dict[int, Flow | Deferred] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    failed: dict[int, RunError | TaskFault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = self.scene.stack.inputs
        self.flows = {number: Flow([tensors[name]], rank) for number, (name, rank) in enumerate(self.batch.inputs)}
        self.left = dict(self.batch.reads)

    def perform_step(self, step: ScheduledStep) -> None:
        """Execute one step, unless something that it needs has failed."""
        operands = [self._take_operand(value) for value in step.operands]
        if None in operands:
            return
        try:
            results = KERNELS[step.op](self.scene, step, operands)
        except (RunError, TaskFault) as error:
            self.failed[step.results[0]] = error
            return
        for value, flow in zip(step.results, results, strict=True):
            if self.left[value]:
                self.flows[value] = flow

    def _take_operand(self, value: int) -> Flow | Deferred | None:
        """The data of an operand, dropped here when nothing else reads it; None when it was not made."""
        self.left[value] -= 1
        return self.flows.get(value) if self.keeps or self.left[value] else self.flows.pop(value, None)

    def read_outcome(self, member: ScheduledProgram) -> Outputs | RunError | TaskFault:
        for value, line in member.lines.items() if self.failed else ():
            if value in self.failed:
                return _at_line(self.failed[value], line)
        flows = [self.flows[value] for value in member.outputs]
        return [flow.tensors for flow in flows if isinstance(flow, Flow)]


def _at_line(error: RunError | TaskFault, line: int) -> RunError | TaskFault:
    """The finding with the line that the step has in this program."""
    return RunError(replace(error.diagnostic, line=line)) if isinstance(error, RunError) else error
