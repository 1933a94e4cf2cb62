"""Which programs of a task are there, the cheapest first? A best-first search over the sampler's typed moves.

No model, no example and no chance: the cost of a program is what the sampler's prior spends on it (coercions, streams
and fns used again, and at the end what was left unused). A half-written program ranks by what was spent and half of
what it would cost to end there: with less ahead the cheapest programs come first, but few in a second. Moves that
commute make one program: a state is the set of the applications in it. A program whose result does not need all of them
is left out, since the smaller one comes too.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.sampler.emit import program_text
from opsmith.targets.step.sampler.features import prior_cost
from opsmith.targets.step.sampler.moves import Enumerator
from opsmith.targets.step.sampler.plans import Plan
from opsmith.targets.step.sampler.problem import Problem
from opsmith.targets.step.sampler.records import Move, State

AHEAD = 0.5  # how much of what it would cost to end here counts for a half-written program
MAX_STATES = 10_000  # half-written programs looked at, per task: then the search ends


def programs(text: str, most: int = MAX_STATES) -> Iterator[str]:
    """The programs of a task text, each once; ends after `most` states, or when there are no more."""
    search = _Search(Enumerator(Problem(read_spec(text))))
    known: set[str] = set()
    for moves in search.sequences(most):
        program = program_text(search.enumerator.problem, moves)
        if program not in known:
            known.add(program)
            yield program


@dataclass(eq=False, slots=True)
class _Node:
    """A half-written program, or with a Return a whole one; its state is made when it is looked at."""

    cost: float  # spent so far
    rank: float  # what it would cost to end here
    key: int  # of the set of applications
    names: tuple[int, ...]  # of its streams: equal names are equal applications
    parent: _Node | None = None
    move: Move | None = None
    state: State | None = None

    @property
    def is_whole(self) -> bool:
        return self.move is not None and self.move.fn is None

    def moves(self) -> list[Move]:
        """From the first on."""
        found: list[Move] = []
        node: _Node | None = self
        while node is not None and node.move is not None:
            found.append(node.move)
            node = node.parent
        return found[::-1]


@dataclass
class _Search:
    enumerator: Enumerator
    _plans: dict[int, tuple[Plan, int]] = field(default_factory=dict)  # the plan is kept, so that its id stays its own
    _names: dict[object, int] = field(default_factory=dict)
    _bits: list[int] = field(default_factory=list)  # per name; a set's key is their exclusive or (Zobrist)
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def sequences(self, most: int) -> Iterator[list[Move]]:
        """Moves that end in a Return, the best first; at most so many states are looked at."""
        heap, order, looked = [(0.0, 0, 0, self._first())], 0, 0
        seen = {heap[0][-1].key}
        while heap and looked < most:
            node = heapq.heappop(heap)[-1]
            if node.is_whole:
                yield node.moves()
                continue
            looked += 1
            for child in (*self._longer(node, seen), *self._ended(node)):
                order += 1
                heapq.heappush(heap, (child.rank, -len(child.names), order, child))  # of equal ones the longest

    def _first(self) -> _Node:
        state = self.enumerator.start()
        return _Node(0.0, 0.0, 0, tuple(self._name(("input", n)) for n in range(state.inputs)), state=state)

    def _longer(self, node: _Node, seen: set[int]) -> Iterator[_Node]:
        """One application more, where that is not a set that was reached before."""
        state = self._state(node)
        for move in state.moves:
            name = self._applied(node, move)
            key = node.key ^ self._bits[name]
            if name not in node.names and key not in seen:
                seen.add(key)
                cost = node.cost + prior_cost(state, move)
                yield _Node(cost, cost + AHEAD * _left(state, move), key, (*node.names, name), node, move)

    def _ended(self, node: _Node) -> Iterator[_Node]:
        """A Return that needs every stream that was made."""
        state = self._state(node)
        made = (1 << len(state.streams)) - 1 & ~state.given
        for move in self.enumerator.returns(state):
            if not made & ~(state.used | move.mask):
                cost = node.cost + prior_cost(state, move)
                yield _Node(cost, cost, node.key, node.names, node, move)

    def _state(self, node: _Node) -> State:
        if node.state is None:
            assert node.parent is not None
            assert node.move is not None
            node.state = self.enumerator.after(self._state(node.parent), node.move)
        return node.state

    def _applied(self, node: _Node, move: Move) -> int:
        assert move.fn is not None
        plan = self._plans.setdefault(id(move.plan), (move.plan, len(self._plans)))[1]
        return self._name((plan, move.fn.index, move.branch, tuple(node.names[arg] for arg in move.args)))

    def _name(self, key: object) -> int:
        """A number for an application, the same for equal ones."""
        found = self._names.setdefault(key, len(self._names))
        if found == len(self._bits):
            self._bits.append(self._draw.getrandbits(64))
        return found


def _left(state: State, move: Move) -> float:
    """What `prior_cost` would add if nothing came after this move: idle inputs, unused fns, streams nobody takes."""
    assert move.fn is not None
    used, unused = state.used | move.mask, state.unused & ~(1 << move.fn.index)
    for place in move.branch:
        unused &= ~(1 << place) if place >= 0 else -1
    idle = state.given & ~used
    dangling = (1 << len(state.streams)) - 1 & ~(state.given | used)
    return 2.0 * idle.bit_count() + unused.bit_count() + dangling.bit_count()
