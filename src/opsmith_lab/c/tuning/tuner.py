"""The tuner of C: rewritings, and which are worth trying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsmith.targets.c.renaming import rename_variables
from opsmith.targets.programs import Advice, TuningMove
from opsmith_lab.c.tuning.advice import list_advice
from opsmith_lab.c.tuning.digest import tuner_digest
from opsmith_lab.c.tuning.moves import apply_move, list_moves


class CTuner:
    """C behind the `Tuner` protocol."""

    def list_moves(self, source: str) -> Sequence[TuningMove]:
        return list_moves(source)

    def apply_move(self, source: str, move: TuningMove) -> str | None:
        return apply_move(source, move)

    def list_advice(self, source: str, profiles: Mapping[str, str]) -> Sequence[Advice]:
        return list_advice(source, profiles)

    def rename_variables(self, source: str, seed: int) -> str:
        return rename_variables(source, seed)

    def name_version(self) -> str:
        return tuner_digest()
