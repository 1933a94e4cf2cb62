"""The passes over a trial's draws in a candidate's process, for whatever runs launches there.

Passes differ in what outputs and workspaces hold before they are written, in the order of draws, blocks and atomics,
and in what is watched (`gpu.passes`). No torch, no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from opsmith.targets.gpu.passes import CALLS, DISORDERED, DrawFills, PassFills
from opsmith.targets.gpu.plan import BoundPlan, ResolvedPlan
from opsmith.targets.gpu.resolving import resolve_plan
from opsmith.targets.native.layout import DrawLayout, Pass

_FEW_THREADS = 1 << 16  # of all launches: they are run several times on one stack where nothing is watched


class LaunchRunner(Protocol):
    """A program that can be run."""

    def begin_draw(self, pass_: Pass, keeps_device: bool, disorder: int, has_one_stack: bool) -> None:
        """`has_one_stack`: the threads of an unwatched pass, which takes time with each switch."""

    def run_draw(
        self,
        plan: BoundPlan,
        resolved: ResolvedPlan,
        fills: DrawFills,
        calls: int,
        draw: DrawLayout,
        views: Sequence[memoryview],
    ) -> list[bytes]:
        """What is left in its outputs."""


@dataclass(frozen=True)
class TrialRun:
    """The passes over a trial."""

    watched: LaunchRunner
    ordinary: LaunchRunner
    plan: BoundPlan
    draws: Sequence[tuple[DrawLayout, list[memoryview]]]
    fills: PassFills

    def run_pass(self, number: int, pass_: Pass) -> list[bytes]:
        """The outputs of all draws, in the order of the draws. Raises PlanFault and what running raises."""
        runner = self.ordinary if pass_.is_ordinary else self.watched
        order = range(len(self.draws))
        rows: dict[int, list[bytes]] = {}
        for count, draw in enumerate(reversed(order) if pass_.is_reversed else order):
            keeps_device = number >= DISORDERED and count > 0
            disorder = self.fills.draw_order(number, pass_)
            resolved = resolve_plan(self.plan, self.draws[draw][0].numbers)
            is_small = sum(prod(launch.grid) * prod(launch.block) for launch in resolved.launches) <= _FEW_THREADS
            runner.begin_draw(pass_, keeps_device, disorder, has_one_stack=is_small)
            fills = self.fills.fill_draw(pass_, draw, self.draws[draw][0].outputs)
            calls = CALLS if pass_.is_ordinary and is_small and len(self.draws) > 1 else 1  # else: of hidden sizes
            rows[draw] = runner.run_draw(self.plan, resolved, fills, calls, *self.draws[draw])
        self.fills.first = self.fills.first or rows
        return [output for draw in order for output in rows[draw]]
