"""The sampler's records: streams, moves and states of a half-written program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from opsmith_lab.step.sampler.kinds import Fields, StreamKind
from opsmith_lab.step.sampler.plans import ApplicationPlan
from opsmith_lab.step.sampler.task import FnView, SamplerTask

MAX_FIELDS = 6
LISTS = 4  # for so many moves that a state may have, one list of arguments is tried

Arguments = Iterator[tuple[int, ...]]


@dataclass(eq=False, slots=True)
class StreamOrigin:
    """Where a stream came from: the primitive and fn, or an input. One object per (primitive, fn) of a task."""

    op: str  # "Input" for an input
    fn: FnView | None
    index: int  # of the fn, or of the input
    number: int


@dataclass(eq=False, slots=True)
class ProgramStream:
    kind: StreamKind
    origin: StreamOrigin
    line: int = 0  # one bit per stream that this one was made from, directly or not


@dataclass(eq=False, slots=True)
class Move:
    """One step. `args` are stream numbers, for an Expert block the index last; `outputs` only for a Return."""

    plan: ApplicationPlan
    fn: FnView | None
    args: tuple[int, ...]
    branch: tuple[int, ...] = ()  # Expert: per place the index of its fn, -1 for handed on
    family: tuple[FnView, ...] = ()  # Expert: the fns that could stand at its places
    outputs: tuple[tuple[tuple[int, ...], ApplicationPlan], ...] = ()
    score: float | None = None  # the part that no later step changes, once the draws' weights gave it
    mask: int = field(init=False)  # one bit per stream among the arguments

    def __post_init__(self) -> None:
        self.mask = 0
        for arg in self.args:
            self.mask |= 1 << arg
        for args, _ in self.outputs:
            for arg in args:
                self.mask |= 1 << arg

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for moves that compute the same."""
        if self.fn is None:
            return ("Return", *(args for args, _ in self.outputs))
        return (self.plan.op, self.fn.index, self.plan.b, self.args, self.plan.dims, self.branch)


@dataclass(eq=False, slots=True)
class PartialProgram:
    """What has been made so far. `uses` counts consumptions per stream, `fn_uses` applications per fn."""

    streams: tuple[ProgramStream, ...]
    uses: tuple[int, ...]
    fn_uses: tuple[int, ...]
    moves: tuple[Move, ...]
    inputs: int  # the first streams are the task's inputs
    weighed: int = 0  # moves of the states before
    fresh: int = 0  # moves that no state before had
    unused: int = field(init=False)  # one bit per fn not applied yet
    used: int = field(init=False)  # one bit per stream consumed
    input_bits: int = field(init=False)  # one bit per input
    made_bits: int = field(init=False)  # one bit per other stream
    newest: int = field(init=False)  # number of the last stream
    unapplied: int = field(init=False)  # how many fns were not applied yet, 3 for more

    def __post_init__(self) -> None:
        self.unused = sum(1 << index for index, uses in enumerate(self.fn_uses) if not uses)
        self.used = sum(1 << number for number, uses in enumerate(self.uses) if uses)
        self.input_bits = (1 << self.inputs) - 1
        self.made_bits = (1 << len(self.streams)) - 1 & ~self.input_bits
        self.newest = len(self.streams) - 1
        self.unapplied = min(self.unused.bit_count(), 3)


class Suppliers:
    """Which streams can supply which of a fn's fields: `starts` has per field (stream, the field after its last)."""

    def __init__(self, task: SamplerTask, fields: Fields, streams: Sequence[ProgramStream], must: int | None) -> None:
        self.starts: list[list[tuple[int, int]]] = [[] for _ in fields]
        self.must = must  # a stream that has to be among them
        for position, start in enumerate(self.starts):
            for number, stream in enumerate(streams):
                stop = position + len(stream.kind.fields)
                if stop <= len(fields) and fields[position:stop] in task.find_table(stream.kind):
                    start.append((number, stop))

    def count_lists(self, allowed: Collection[int]) -> int:
        """How many lists of the allowed streams there are."""
        return self._count_endings(allowed)[False][0]

    def iterate_lists(self, allowed: Collection[int]) -> Arguments:
        """They themselves, in order of the streams' numbers."""
        return self._extend_list((), 0, allowed, self._count_endings(allowed))

    def _extend_list(
        self, head: tuple[int, ...], position: int, allowed: Collection[int], endings: Mapping[bool, list[int]]
    ) -> Arguments:
        if position == len(self.starts):
            yield head
            return
        for number, stop in self.starts[position]:
            longer = (*head, number)
            if number in allowed and endings[self.must in longer][stop]:
                yield from self._extend_list(longer, stop, allowed, endings)

    def _count_endings(self, allowed: Collection[int]) -> dict[bool, list[int]]:
        """How many ways there are to go on from each field: {whether `must` is there already: [number per field]}."""
        every, without = self._count_ways(allowed, None), self._count_ways(allowed, self.must)
        missing = every if self.must is None else [a - b for a, b in zip(every, without, strict=True)]
        return {True: every, False: missing}

    def _count_ways(self, allowed: Collection[int], without: int | None) -> list[int]:
        ways = [0] * len(self.starts) + [1]
        for position in reversed(range(len(self.starts))):
            ways[position] = sum(
                ways[stop] for number, stop in self.starts[position] if number in allowed and number != without
            )
        return ways


def list_arguments(
    task: SamplerTask, fields: Fields, streams: Sequence[ProgramStream], must: int | None, used: int, limit: int
) -> Arguments:
    """Ordered streams whose fields can be brought to `fields`; with `must`, only those that contain it.

    Where these are more than `limit`, the streams that were not consumed yet come first, then the newest; of those as
    many are combined as give no more than `limit` lists. `used`: one bit per stream that was consumed.
    """
    if len(fields) > MAX_FIELDS:
        return iter(())
    suppliers = Suppliers(task, fields, streams, must)
    everything = range(len(streams))
    if suppliers.count_lists(everything) <= limit:
        return suppliers.iterate_lists(everything)
    ranked = sorted(everything, key=lambda number: (number != must, used >> number & 1, -number))
    few = bisect_right(everything, limit, key=lambda count: suppliers.count_lists(ranked[:count])) - 1
    few += not suppliers.count_lists(ranked[:few])
    return islice(suppliers.iterate_lists(frozenset(ranked[:few])), limit)
