"""Expert blocks as moves: Partition by a Multihot stream, one fn per place, Merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opsmith.targets.step.sampler.kinds import Fields
from opsmith.targets.step.sampler.orders import orders
from opsmith.targets.step.sampler.plans import Planner
from opsmith.targets.step.sampler.problem import FnView, Problem
from opsmith.targets.step.sampler.records import Move, Stream, arguments


class Experts:
    """Expert blocks: Partition by a Multihot, one fn per place, Merge."""

    def __init__(self, problem: Problem, planner: Planner) -> None:
        self.problem, self.planner = problem, planner
        self.lengths = self._lengths()

    def _lengths(self) -> dict[Fields, int]:
        """Number of places per Multihot type."""
        found = {}
        for fields in sorted(self.problem.wanted):
            index = self.problem.kinds.multihot(fields)
            if index is not None and index.length.symbols <= self.problem.spec.sizes.keys():
                found[fields] = index.length.value(self.problem.spec.sizes)
        return found

    def moves(self, streams: Sequence[Stream]) -> Iterator[Move]:
        """Blocks that use the newest stream, as data or as index."""
        newest = len(streams) - 1
        for number, stream in enumerate(streams):
            places = self.lengths.get(stream.kind.fields)
            if places is None:
                continue
            must = None if number == newest else newest
            for merge, family in self._families():
                takes = family[0].takes if family else merge.takes
                for args in arguments(self.problem, takes, streams, must):
                    yield from self._blocks(streams, merge, family, (*args, number), places)

    def _families(self) -> Iterator[tuple[FnView, tuple[FnView, ...]]]:
        """(merge fn, fns of one signature that feed it); an empty family hands the data on."""
        for merge in self.problem.fns:
            if not merge.stateful:
                continue
            groups: dict[Fields, list[FnView]] = {}
            for fn in self.problem.fns:
                if not fn.stateful and fn.gives == merge.takes:
                    groups.setdefault(fn.takes, []).append(fn)
            for group in groups.values():
                yield merge, tuple(group)
            if merge.takes not in groups:
                yield merge, ()

    def _blocks(
        self, streams: Sequence[Stream], merge: FnView, family: tuple[FnView, ...], args: tuple[int, ...], places: int
    ) -> Iterator[Move]:
        kinds = tuple(streams[arg].kind for arg in args)
        plans = self.planner.routes(family[0] if family else None, merge, kinds, places)
        for plan in plans[:2]:
            for branch in self._orders(merge, family, places):
                yield Move(plan, merge, args, branch, family)

    def _orders(self, merge: FnView, family: tuple[FnView, ...], places: int) -> tuple[tuple[int, ...], ...]:
        return orders(family, places, hands_on=not family or family[0].takes == merge.takes)
