"""What outputs and workspaces hold before the launches of a pass, and the passes over a program that is to be kept.

Drawn from the trial's seed and the program, as `native.surroundings` says: junk, or what another call may have left.
The third pass comes to blocks, threads and atomics in other orders; one of those of a program that is to be kept runs
it as its user does: nothing watched, on arrays side by side that hold old values, several times.

No torch, no numpy: a candidate's process imports this.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from opsmith.targets.native.layout import PASSES, PATTERN, Pass
from opsmith.targets.native.surroundings import draw_junk, draw_left_bytes, draw_old_output, repeat_tile

DISORDERED = 2  # the number of the pass in other orders
CALLS = 3  # of each draw, as a user makes them
_ORDINARY = Pass(PATTERN, canary=0, heap=0, poison=0, has_old_outputs=True, has_old_heap=True, is_ordinary=True)
FULL_PASSES = (*PASSES, _ORDINARY)
EMULATED_PASSES = (PASSES[0], replace(_ORDINARY, is_reversed=True), PASSES[DISORDERED])  # two of three are watched


@dataclass
class PassFills:
    """What is drawn for the passes over a trial."""

    source: random.Random
    first: dict[int, list[bytes]] = field(default_factory=dict)  # outputs of the first pass, by draw

    def draw_order(self, number: int, pass_: Pass) -> int:
        """What orders of blocks and atomics follow from; 0: they are as usual."""
        return self.source.randrange(1, 1 << 63) if number == DISORDERED or pass_.is_ordinary else 0

    def fill_draw(self, pass_: Pass, draw: int, sizes: Sequence[int]) -> DrawFills:
        """`sizes`: the bytes of each output of the draw."""
        if not pass_.has_old_outputs or draw not in self.first:
            return DrawFills(self.source, pass_, [_fill_junk(self.source, pass_.poison, size) for size in sizes])
        others = [row for number, row in self.first.items() if number != draw]
        outputs = [
            draw_old_output(self.source, right, [row[place] for row in others if len(row[place]) == len(right)])
            for place, right in enumerate(self.first[draw])
        ]
        return DrawFills(self.source, pass_, outputs)


@dataclass(frozen=True)
class DrawFills:
    """What outputs and workspaces of one draw hold."""

    source: random.Random
    pass_: Pass
    outputs: Sequence[bytes]

    def draw_workspace(self, size: int, arrays: Sequence[memoryview]) -> bytes:
        if self.pass_.has_old_heap or self.pass_.has_old_outputs:
            return repeat_tile(draw_left_bytes(self.source, arrays), size)
        return _fill_junk(self.source, self.pass_.poison, size)


def _fill_junk(source: random.Random, kind: int, size: int) -> bytes:
    return repeat_tile(draw_junk(source, kind), size)


def begin_fills(seed: str, artefacts: Sequence[Path]) -> PassFills:
    """Those of a trial of a program."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in artefacts)).hexdigest()
    return PassFills(random.Random(f"{seed} {digest}"))
