"""The tuner of C: rewritings, and which are worth trying."""

from __future__ import annotations

from opsmith.targets.c.renaming import rename_variables
from opsmith_lab.c.tuning.advice import list_advice
from opsmith_lab.c.tuning.digest import tuner_digest
from opsmith_lab.c.tuning.moves import apply_move, list_moves


class CTuner:
    """C behind the `Tuner` protocol."""

    list_moves = staticmethod(list_moves)

    apply_move = staticmethod(apply_move)

    list_advice = staticmethod(list_advice)

    rename_variables = staticmethod(rename_variables)

    name_version = staticmethod(tuner_digest)
