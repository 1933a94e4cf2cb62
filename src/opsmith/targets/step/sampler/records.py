"""The sampler's records: streams, moves and states of a half-written program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opsmith.targets.step.sampler.kinds import Fields, Kind
from opsmith.targets.step.sampler.plans import Plan
from opsmith.targets.step.sampler.problem import FnView, Problem

MAX_FIELDS = 6


@dataclass(eq=False, slots=True)
class Origin:
    """Where a stream came from: the primitive and fn, or an input. One object per (primitive, fn) of a problem."""

    op: str  # "Input" for an input
    fn: FnView | None
    index: int  # of the fn, or of the input
    number: int


@dataclass(eq=False, slots=True)
class Stream:
    kind: Kind
    origin: Origin
    line: int = 0  # one bit per stream that this one was made from, directly or not


@dataclass(eq=False, slots=True)
class Move:
    """One step. `args` are stream numbers, for an Expert block the index last; `outputs` only for a Return."""

    plan: Plan
    fn: FnView | None
    args: tuple[int, ...]
    branch: tuple[int, ...] = ()  # Expert: per place the index of its fn, -1 for handed on
    family: tuple[FnView, ...] = ()  # Expert: the fns that could stand at its places
    outputs: tuple[tuple[tuple[int, ...], Plan], ...] = ()
    scores: dict[int, float] = field(default_factory=dict)  # the part that no later step changes, by policy number
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
class State:
    """What has been made so far. `uses` counts consumptions per stream, `fn_uses` applications per fn."""

    streams: tuple[Stream, ...]
    uses: tuple[int, ...]
    fn_uses: tuple[int, ...]
    moves: tuple[Move, ...]
    inputs: int  # the first streams are the task's inputs
    unused: int = field(init=False)  # one bit per fn not applied yet
    used: int = field(init=False)  # one bit per stream consumed
    given: int = field(init=False)  # one bit per input

    def __post_init__(self) -> None:
        self.unused = sum(1 << index for index, uses in enumerate(self.fn_uses) if not uses)
        self.used = sum(1 << number for number, uses in enumerate(self.uses) if uses)
        self.given = (1 << self.inputs) - 1


def arguments(
    problem: Problem, fields: Fields, streams: Sequence[Stream], newest: int | None
) -> Iterator[tuple[int, ...]]:
    """Ordered streams whose fields can be brought to `fields`; with `newest`, only those that contain it."""
    if len(fields) > MAX_FIELDS:
        return
    yield from _arguments(problem, fields, streams, newest, ())


def _arguments(
    problem: Problem, fields: Fields, streams: Sequence[Stream], newest: int | None, head: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    if not fields:
        if newest is None or newest in head:
            yield head
        return
    for number, stream in enumerate(streams):
        length = len(stream.kind.fields)
        if length > len(fields) or fields[:length] not in problem.table(stream.kind):
            continue
        if length == len(fields) and newest is not None and number != newest and newest not in head:
            continue
        yield from _arguments(problem, fields[length:], streams, newest, (*head, number))
