"""Expert blocks as moves: Partition by a Multihot stream, one fn per place, Merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from opsmith_lab.step.sampler.kinds import Fields
from opsmith_lab.step.sampler.orders import list_orders
from opsmith_lab.step.sampler.plans import Planner
from opsmith_lab.step.sampler.records import LISTS, Move, ProgramStream, list_arguments
from opsmith_lab.step.sampler.task import FnView, SamplerTask

MAX_PLACES = 128  # of a block


class Experts:
    """Expert blocks: Partition by a Multihot, one fn per place, Merge."""

    def __init__(self, task: SamplerTask, planner: Planner) -> None:
        self.task, self.planner = task, planner
        self.lengths = self._count_places()
        self.families = tuple(self._find_families())

    def _count_places(self) -> dict[Fields, int]:
        """Number of places per Multihot type; those with more than `MAX_PLACES` are left out."""
        places_by_fields = {}
        for fields in sorted(self.task.field_runs):
            index = self.task.kinds.decode_multihot(fields)
            if index is not None and index.length.symbols <= self.task.spec.sizes.keys():
                places_by_fields[fields] = index.length.value(self.task.spec.sizes)
        return {fields: places for fields, places in places_by_fields.items() if places <= MAX_PLACES}

    def list_moves(self, streams: Sequence[ProgramStream], used: int, room: int) -> Iterator[Move]:
        """Blocks that use the newest stream, as data or as index; at most `room`, from a quarter as many arguments."""
        indices = [number for number, stream in enumerate(streams) if stream.kind.fields in self.lengths]
        limit = max(1, room // LISTS // max(1, len(indices) * len(self.families)))
        return islice(self._combine_moves(streams, used, indices, limit), room)

    def _combine_moves(
        self, streams: Sequence[ProgramStream], used: int, indices: Sequence[int], limit: int
    ) -> Iterator[Move]:
        newest = len(streams) - 1
        for index in indices:
            must = None if index == newest else newest
            for merge, family in self.families:
                takes = family[0].takes if family else merge.takes
                for args in list_arguments(self.task, takes, streams, must, used, limit):
                    yield from self._plan_blocks(streams, merge, family, (*args, index))

    def _find_families(self) -> Iterator[tuple[FnView, tuple[FnView, ...]]]:
        """(merge fn, fns of one signature that feed it); an empty family hands the data on."""
        for merge in self.task.fns:
            if not merge.stateful:
                continue
            groups: dict[Fields, list[FnView]] = {}
            for fn in self.task.fns:
                if not fn.stateful and fn.gives == merge.takes:
                    groups.setdefault(fn.takes, []).append(fn)
            for group in groups.values():
                yield merge, tuple(group)
            if merge.takes not in groups:
                yield merge, ()

    def _plan_blocks(
        self, streams: Sequence[ProgramStream], merge: FnView, family: tuple[FnView, ...], args: tuple[int, ...]
    ) -> Iterator[Move]:
        kinds = tuple(streams[arg].kind for arg in args)
        places = self.lengths[kinds[-1].fields]
        plans = self.planner.plan_routes(family[0] if family else None, merge, kinds, places)
        hands_on = not family or family[0].takes == merge.takes
        for plan in plans[:2]:
            for branch in list_orders(family, places, hands_on=hands_on):
                yield Move(plan, merge, args, branch, family)
