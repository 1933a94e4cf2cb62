"""Progress: which of the values that the reference computes on its way the streams of a batch's programs hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from opsmith.problems.draws import Draw
from opsmith.problems.intermediates import LARGEST, compute_intermediates
from opsmith.problems.tolerance import array_of
from opsmith.targets.step.execution.folds import Deferred
from opsmith.targets.step.execution.run import BatchRun

_COMPUTING = ("Map", "Accum", "Scan", "Merge")  # every other primitive only moves numbers


class Progress:
    """That of one run which kept its streams. All of them are looked at, at once, when the first program asks."""

    def __init__(self, run: BatchRun, draws: Sequence[Draw]) -> None:
        self._run, self._draws = run, draws
        self._unseen: set[int] = set()  # streams that are made in parts, or too large to look at
        self._held_by_draw: dict[int, dict[int, set[int]]] = {}  # the numbers of values, by stream

    def find_held(self, member: int, draw: int) -> set[int] | None:
        """The numbers of the values of a draw that a program holds; None: not all of its streams can be seen."""
        if draw not in self._held_by_draw:
            self._held_by_draw[draw] = self._find_all(draw)
        held, streams = self._held_by_draw[draw], self._run.batch.members[member].lines.keys()
        return None if streams & self._unseen else {value for stream in streams & held.keys() for value in held[stream]}

    def _find_all(self, draw: int) -> dict[int, set[int]]:
        """Streams of one shape at once."""
        groups: defaultdict[tuple[bool, torch.Size], list[tuple[int, Tensor]]] = defaultdict(list)
        for step in self._run.batch.steps:
            stream, flow = step.results[0], self._run.flows.get(step.results[0])
            if step.op not in _COMPUTING or flow is None:
                continue
            if isinstance(flow, Deferred):
                self._unseen.add(stream)
                continue
            for part in flow.of_draw(draw):
                if part.numel() > LARGEST:
                    self._unseen.add(stream)
                elif part.is_floating_point():
                    groups[flow.rows is not None, part.shape].append((stream, part))
        held: defaultdict[int, set[int]] = defaultdict(set)
        for (is_part, shape), pairs in groups.items():
            table = array_of(torch.stack([part for _, part in pairs]).reshape(len(pairs), shape.numel()))
            for row, value in self._draws[draw].remember(compute_intermediates).find_held(table, is_part):
                held[pairs[row][0]].add(value)
        return held
