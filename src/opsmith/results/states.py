"""The state of an attempt: a verdict in five words, as optimisation is counted by, in any language."""

from __future__ import annotations

from enum import StrEnum

from opsmith.records import Outcome, Stage


class AttemptState(StrEnum):
    """In the order in which an attempt passes them."""

    GENERATION = "generation failure"  # the reply held no program
    COMPILE = "compile failure"  # refused before anything ran
    RUNTIME = "runtime error"
    MISMATCH = "mismatch"  # it ran, and its values are not the expected ones
    CORRECT = "correct"


_STATES = {Stage.FORMAT: AttemptState.GENERATION, Stage.RUN: AttemptState.RUNTIME, Stage.MATCH: AttemptState.MISMATCH}


def name_state(stage: Stage | None, outcome: Outcome | None) -> AttemptState | None:
    """None where something other than the candidate failed, or there is no verdict.

    >>> name_state(Stage("AFFINE"), Outcome.REFUSED).value, name_state(Stage.MATCH, Outcome.PASSED).value
    ('compile failure', 'correct')
    """
    if outcome is Outcome.PASSED:
        return AttemptState.CORRECT
    if stage is None or outcome is not Outcome.REFUSED:
        return None
    return _STATES.get(stage, AttemptState.COMPILE)
