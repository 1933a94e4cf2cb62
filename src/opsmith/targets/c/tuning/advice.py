"""Which rewritings of a program are worth trying, the one that usually helps most first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsmith.targets.c.tuning.moves import list_moves
from opsmith.targets.programs import Advice

_GAINS = {  # as they were seen on loops of many kinds
    "tile": (4.0, "sums stay in registers, and one load serves several of them"),
    "vectorise-all": (3.0, "a sum that waits for the one before it uses one lane of a vector"),
    "vector-math": (2.5, "a function that is called for one number at a time takes most of the time"),
    "vectorise-reduction": (2.0, "a sum that waits for the one before it uses one lane of a vector"),
    "interleave": (1.5, "turns that wait for each other leave the processor idle"),
    "vectorise-loop": (1.1, "the compiler may be told that turns are independent"),
}


def list_advice(source: str, profiles: Mapping[str, str]) -> Sequence[Advice]:
    """The largest expected gain first."""
    advice = []
    for move in list_moves(source):
        gain, why = _GAINS.get(move.name, (1.05, "it sometimes helps"))
        advice.append(Advice((move.name,), move.line, gain, move.description, why, move.parameters))
    return sorted(advice, key=lambda each: -each.gain)
