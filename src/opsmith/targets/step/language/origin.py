"""The record of what a task's inputs are computed from: `drawn_from` of a task file."""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.problems.problem import CaseSpec, Derivation, Problem
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec, TensorSpec


@dataclass(frozen=True)
class OriginSpec:
    """What a task's inputs are computed from: tensors of another task, drawn as there.

    `code` assigns every input by its name; `outputs` are there only for margins that read what their texts assign.
    """

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    code: str
    outputs: tuple[OutputSpec, ...] = ()
    margins: tuple[str, ...] = ()
    cases: tuple[CaseSpec, ...] = ()

    def make_derivation(self, task: TaskSpec) -> Derivation:
        """In any language; sizes, shape sets and `global` are those of the task."""
        return Derivation(
            Problem(
                tuple(tensor.input_tensor for tensor in self.inputs),
                tuple(tensor.input_tensor for tensor in self.parameters),
                tuple(output.output_tensors for output in self.outputs),
                task.global_code,
                task.sizes,
                task.shapes,
                self.margins,
                self.cases,
            ),
            self.code,
        )
