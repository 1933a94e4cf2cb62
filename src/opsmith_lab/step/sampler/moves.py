"""The moves of a half-written program: which fn may be applied to which streams next, and what may be returned.

A state is a list of streams, inputs first. Its moves are those of the state before plus those that use the newest
stream, so that a step costs only what is new. Enumeration is deterministic.

Where a task has many fns and streams of one type, not all moves are kept: a program's states have at most `WORK` moves
together, a state its share of those that its ancestors left over. The moves that spend least stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import product

from opsmith_lab.step.sampler.experts import Experts
from opsmith_lab.step.sampler.features import prior_cost
from opsmith_lab.step.sampler.kinds import Fields, StreamKind
from opsmith_lab.step.sampler.plans import ApplicationPlan, Planner
from opsmith_lab.step.sampler.records import (
    LISTS,
    Move,
    PartialProgram,
    ProgramStream,
    StreamOrigin,
    list_arguments,
)
from opsmith_lab.step.sampler.task import SamplerTask

WORK = 80_000  # moves of all states on the way to one program together
MAX_RETURNS = 40
MAX_VARIED = 6  # outputs that are handed out in more than one way where there are too many
MAX_OUTPUTS = 512  # lists of streams tried for one output


class Enumerator:
    """States and moves of one task."""

    def __init__(self, task: SamplerTask) -> None:
        self.task = task
        self.planner = Planner(task)
        self.experts = Experts(task, self.planner)
        self._origins: dict[tuple[str, int], StreamOrigin] = {}

    @property
    def size(self) -> int:
        """Bytes that its tables take, roughly."""
        return self.task.size + self.planner.size

    def find_origin(self, op: str, index: int) -> StreamOrigin:
        """The origin object of a primitive with a fn, or of an input."""
        origin = self._origins.get((op, index))
        if origin is None:
            fn = None if op == "Input" else self.task.fns[index]
            origin = self._origins[op, index] = StreamOrigin(op, fn, index, len(self._origins))
        return origin

    def start_program(self) -> PartialProgram:
        """The state in which only the inputs exist."""
        state = PartialProgram((), (), (0,) * len(self.task.fns), (), len(self.task.inputs))
        for index, kind in enumerate(self.task.inputs):
            state = self._add_stream(state, ProgramStream(kind, self.find_origin("Input", index)))
        return state

    def apply_move(self, state: PartialProgram, move: Move, kind: StreamKind | None = None) -> PartialProgram:
        """The state after a move that makes a stream; `kind` overrides the type of a program that was given."""
        assert move.fn is not None
        assert move.plan.result is not None
        line = 0
        for arg in move.args:
            line |= state.streams[arg].line | 1 << arg
        stream = ProgramStream(kind or move.plan.result, self.find_origin(move.plan.op, move.fn.index), line)
        uses, fn_uses = list(state.uses), list(state.fn_uses)
        for arg in move.args:
            uses[arg] += 1
        for index in {move.fn.index, *move.branch} - {-1}:
            fn_uses[index] += 1
        moves = tuple(candidate for candidate in state.moves if candidate is not move)
        weighed = state.weighed + len(state.moves)
        before = PartialProgram(state.streams, tuple(uses), tuple(fn_uses), moves, state.inputs, weighed)
        return self._add_stream(before, stream)

    def _add_stream(self, state: PartialProgram, stream: ProgramStream) -> PartialProgram:
        streams = (*state.streams, stream)
        steps_ahead = max(1, self.task.limit + state.inputs - len(state.streams))
        room = max(0, WORK - state.weighed) // steps_ahead
        new = [*self._list_applications(streams, state.used, room), *self.experts.list_moves(streams, state.used, room)]
        moves, fresh = (*state.moves, *new), min(len(new), room)
        state = PartialProgram(streams, (*state.uses, 0), state.fn_uses, moves, state.inputs, state.weighed, fresh)
        return state if len(moves) <= room else replace(state, moves=_cheapest_moves(state, room))

    def _list_applications(self, streams: Sequence[ProgramStream], used: int, room: int) -> Iterator[Move]:
        newest = len(streams) - 1
        limit = max(1, room // LISTS // max(1, len(self.task.fns)))
        lists: dict[Fields, list[tuple[int, ...]]] = {}
        for fn in self.task.fns:
            if fn.takes not in lists:
                lists[fn.takes] = list(list_arguments(self.task, fn.takes, streams, newest, used, limit))
            for args in lists[fn.takes]:
                for plan in self.planner.plan_applications(fn, tuple(streams[arg].kind for arg in args)):
                    yield Move(plan, fn, args)

    def list_returns(self, state: PartialProgram) -> list[Move]:
        """Every way to end here; where there are too many, the cheapest, of equals those of the newest streams."""
        per_goal = [list(self._list_outputs(state, goal)) for goal in range(len(self.task.goals))]
        if math.prod(map(len, per_goal)) > MAX_RETURNS:
            room = max(2, round(MAX_RETURNS ** (1 / len(per_goal))))
            per_goal = [
                sorted(ways, key=lambda way: (way[1].cost, -max(way[0])))[: room if goal < MAX_VARIED else 1]
                for goal, ways in enumerate(per_goal)
            ]
        return [Move(outputs[0][1], None, (), outputs=outputs) for outputs in product(*per_goal)]

    def _list_outputs(self, state: PartialProgram, goal: int) -> Iterator[tuple[tuple[int, ...], ApplicationPlan]]:
        fields = self.task.goals[goal].fields
        for args in list_arguments(self.task, fields, state.streams, None, state.used, MAX_OUTPUTS):
            kinds = tuple(state.streams[arg].kind for arg in args)
            yield from ((args, plan) for plan in self.planner.plan_returns(goal, kinds)[:2])


def _cheapest_moves(state: PartialProgram, count: int) -> tuple[Move, ...]:
    """The moves that spend least, of equals the newest, in their order."""
    costs = [prior_cost(state, move) for move in state.moves]
    places = nsmallest(count, range(len(costs)), key=lambda place: (costs[place], -place))
    return tuple(state.moves[place] for place in sorted(places))
