"""Comparison of a program's streams with the expected values, in the words of the language."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from opsmith.problems.compare import Clues, FindHeld, Wording, compare_outputs
from opsmith.problems.draws import Limits
from opsmith.records import Stage
from opsmith.targets.step.execution.data import StepTrialData
from opsmith.targets.trial import TrialResult

WORDING = Wording(
    outputs="streams",
    has_fields=True,
    reordered="check Flatten, Reshape, Bufferize and the order of dims",
    differing="check which streams and functions are combined, and what is reduced",
)


def compare_streams(
    case: StepTrialData,
    results: Sequence[Sequence[Tensor]],
    limits: Limits | None = None,
    find_held: FindHeld | None = None,
) -> TrialResult:
    """Judge the results, per output and field with the draws as first axis, of one run on all draws of `case`.

    `limits` are those of the case unless given. `find_held`: see `Clues`. Raises TaskFault when the reference fails.
    """
    limits = case.limits if limits is None else limits
    agreement = compare_outputs(
        case.draws[0].problem, limits, results, case.label, WORDING, Clues(case.draws, find_held)
    )
    return TrialResult(Stage.MATCH, *agreement, undecided=case.undecided)
