"""What a problem's data is computed from, where it is not drawn by generators of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith.problems.problem import Problem

if TYPE_CHECKING:
    from opsmith.problems.bindings import Bindings


@dataclass(frozen=True)
class Derivation:
    """Where a problem's inputs come from: what `code` makes of the data of another problem, drawn as for that one.

    `code` is PyTorch statements that see that problem's tensors as `input_data` and assign every input by its name;
    parameters are passed through by name. Of `problem`, inputs, parameters, margins and cases count; its outputs are
    there only for margins that read what their references assign.
    """

    problem: Problem
    code: str

    def derive_data(self, problem: Problem, origin: Bindings) -> Bindings:
        """The data of `problem` from a draw of this one's, both in the declared precision. Raises TaskFault."""
        from opsmith.problems.derivation import compute_inputs  # noqa: PLC0415 - imports torch

        return compute_inputs(problem, self.code, origin)
