"""The moves of a half-written program: which fn may be applied to which streams next, or what may be returned?

A state is a list of streams, inputs first. Its moves are those of the state before plus those that use the newest
stream, so that a step costs only what is new. Enumeration is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from opsmith.targets.step.sampler.experts import Experts
from opsmith.targets.step.sampler.kinds import Kind
from opsmith.targets.step.sampler.plans import Plan, Planner
from opsmith.targets.step.sampler.problem import Problem
from opsmith.targets.step.sampler.records import Move, Origin, State, Stream, arguments

MAX_RETURNS = 40


class Enumerator:
    """States and moves of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.planner = Planner(problem)
        self.experts = Experts(problem, self.planner)
        self._origins: dict[tuple[str, int], Origin] = {}

    def origin(self, op: str, index: int) -> Origin:
        """The origin object of a primitive with a fn, or of an input."""
        found = self._origins.get((op, index))
        if found is None:
            fn = None if op == "Input" else self.problem.fns[index]
            found = self._origins[op, index] = Origin(op, fn, index, len(self._origins))
        return found

    def start(self) -> State:
        """The state in which only the inputs exist."""
        state = State((), (), (0,) * len(self.problem.fns), (), len(self.problem.inputs))
        for index, kind in enumerate(self.problem.inputs):
            state = self._grown(state, Stream(kind, self.origin("Input", index)), state.moves)
        return state

    def after(self, state: State, move: Move, kind: Kind | None = None) -> State:
        """The state after a move that makes a stream; `kind` overrides the type of a program that was given."""
        assert move.fn is not None
        assert move.plan.result is not None
        line = 0
        for arg in move.args:
            line |= state.streams[arg].line | 1 << arg
        stream = Stream(kind or move.plan.result, self.origin(move.plan.op, move.fn.index), line)
        uses, fn_uses = list(state.uses), list(state.fn_uses)
        for arg in move.args:
            uses[arg] += 1
        for index in {move.fn.index, *move.branch} - {-1}:
            fn_uses[index] += 1
        rest = tuple(other for other in state.moves if other is not move)
        before = State(state.streams, tuple(uses), tuple(fn_uses), rest, state.inputs)
        return self._grown(before, stream, rest)

    def _grown(self, state: State, stream: Stream, moves: tuple[Move, ...]) -> State:
        streams = (*state.streams, stream)
        new = [*self._applications(streams), *self.experts.moves(streams)]
        return State(streams, (*state.uses, 0), state.fn_uses, (*moves, *new), state.inputs)

    def _applications(self, streams: Sequence[Stream]) -> Iterator[Move]:
        newest = len(streams) - 1
        for fn in self.problem.fns:
            for args in arguments(self.problem, fn.takes, streams, newest):
                for plan in self.planner.applications(fn, tuple(streams[arg].kind for arg in args)):
                    yield Move(plan, fn, args)

    def returns(self, state: State) -> list[Move]:
        """Every way to end here, the cheapest first where there are too many."""
        per_goal = [list(self._outputs(state, goal)) for goal in range(len(self.problem.goals))]
        count = 1
        for ways in per_goal:
            count *= len(ways)
        if count > MAX_RETURNS:
            room = max(2, round(MAX_RETURNS ** (1 / len(per_goal))))
            per_goal = [sorted(ways, key=lambda way: (way[1].cost, -max(way[0])))[:room] for ways in per_goal]
        return [Move(outputs[0][1], None, (), outputs=outputs) for outputs in product(*per_goal)]

    def _outputs(self, state: State, goal: int) -> Iterator[tuple[tuple[int, ...], Plan]]:
        fields = self.problem.goals[goal].fields
        for args in arguments(self.problem, fields, state.streams, None):
            yield from ((args, plan) for plan in self.planner.returns(goal, self._kinds(state, args))[:2])

    @staticmethod
    def _kinds(state: State, args: tuple[int, ...]) -> tuple[Kind, ...]:
        return tuple(state.streams[arg].kind for arg in args)
