"""A best-first search over the sampler's typed moves: the programs of a task, the cheapest first.

No model, no example and no chance: the cost of a program is what the sampler's prior spends on it (coercions, streams
and fns used again, and at the end what was left unused). A half-written program ranks by what was spent and half of
what it would cost to end there: with less ahead the cheapest programs come first, but few in a second. Moves that
commute make one program: a state is the set of the applications in it. A program whose result does not need all of them
is left out, since the smaller one comes too.

What it holds is bounded: it ends after a number of half-written programs looked at, of sets reached, or of bytes that
its states take, and of the programs that wait only the best are kept; the others would come after all of these.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from opsmith.targets.step.ir import read_spec
from opsmith_lab.step.sampler.emit import program_text
from opsmith_lab.step.sampler.features import prior_cost
from opsmith_lab.step.sampler.moves import Enumerator
from opsmith_lab.step.sampler.plans import ApplicationPlan
from opsmith_lab.step.sampler.records import Move, PartialProgram
from opsmith_lab.step.sampler.task import SamplerTask

AHEAD = 0.5  # how much of what it would cost to end here counts for a half-written program
MAX_STATES = 10_000  # half-written programs looked at, per task: then the search ends
MAX_SETS = 2_500_000  # of applications that were reached: then it ends too
STATES_ROOM = 200 << 20  # bytes that the states looked at may take, roughly
MAX_WAITING = 100_000  # programs that wait, whole or half-written
MOVE_BYTES, PLACE_BYTES = 200, 8  # of a move, and of its place in a state


def search_programs(text: str, limit: int = MAX_STATES) -> Iterator[str]:
    """The programs of a task text, each once; ends after `limit` states, or when there are no more."""
    search = _Search(Enumerator(SamplerTask(read_spec(text))))
    programs: set[str] = set()
    for moves in search.search_moves(limit):
        program = program_text(search.enumerator.task, moves)
        if program not in programs:
            programs.add(program)
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
    state: PartialProgram | None = None

    @property
    def is_whole(self) -> bool:
        return self.move is not None and self.move.fn is None

    def list_moves(self) -> list[Move]:
        """From the first on."""
        moves: list[Move] = []
        node: _Node | None = self
        while node is not None and node.move is not None:
            moves.append(node.move)
            node = node.parent
        return moves[::-1]


@dataclass
class _Search:
    enumerator: Enumerator
    _plans: dict[int, tuple[ApplicationPlan, int]] = field(
        default_factory=dict
    )  # the plan is kept, so that its id stays its own
    _names: dict[object, int] = field(default_factory=dict)
    _bits: list[int] = field(default_factory=list)  # per name; a set's key is their exclusive or (Zobrist)
    _draw: random.Random = field(default_factory=lambda: random.Random(0))
    _held: int = 0  # bytes that the states take

    def search_moves(self, limit: int) -> Iterator[list[Move]]:
        """Moves that end in a Return, the best first; at most so many states are looked at."""
        state = self.enumerator.start_program()
        inputs = tuple(self._number_key(("input", number)) for number in range(state.inputs))
        heap, order, looked = [(0.0, 0, 0, _Node(0.0, 0.0, 0, inputs, state=state))], 0, 0
        reached = {heap[0][-1].key}
        while heap and looked < limit and len(reached) < MAX_SETS and self._held < STATES_ROOM:
            node = heapq.heappop(heap)[-1]
            if node.is_whole:
                yield node.list_moves()
                continue
            looked += 1
            for child in (*self._extend_node(node, reached), *self._end_node(node)):
                order += 1
                heapq.heappush(heap, (child.rank, -len(child.names), order, child))  # of equal ones the longest
            if len(heap) > 2 * MAX_WAITING:
                heap = heapq.nsmallest(MAX_WAITING, heap)

    def _extend_node(self, node: _Node, reached: set[int]) -> Iterator[_Node]:
        """One application more, where that is not a set that was reached before."""
        state = self._open_state(node)
        for move in state.moves:
            name = self._name_move(node, move)
            key = node.key ^ self._bits[name]
            if name not in node.names and key not in reached:
                reached.add(key)
                cost = node.cost + prior_cost(state, move)
                yield _Node(cost, cost + AHEAD * _cost_ahead(state, move), key, (*node.names, name), node, move)

    def _end_node(self, node: _Node) -> Iterator[_Node]:
        """A Return that needs every stream that was made."""
        state = self._open_state(node)
        made_bits = (1 << len(state.streams)) - 1 & ~state.input_bits
        for move in self.enumerator.list_returns(state):
            if not made_bits & ~(state.used | move.mask):
                cost = node.cost + prior_cost(state, move)
                yield _Node(cost, cost, node.key, node.names, node, move)

    def _open_state(self, node: _Node) -> PartialProgram:
        if node.state is None:
            assert node.parent is not None
            assert node.move is not None
            node.state = self.enumerator.apply_move(self._open_state(node.parent), node.move)
            self._held += MOVE_BYTES * node.state.fresh + PLACE_BYTES * len(node.state.moves)
        return node.state

    def _name_move(self, node: _Node, move: Move) -> int:
        assert move.fn is not None
        plan = self._plans.setdefault(id(move.plan), (move.plan, len(self._plans)))[1]
        return self._number_key((plan, move.fn.index, move.branch, tuple(node.names[arg] for arg in move.args)))

    def _number_key(self, key: object) -> int:
        """A number for an application, the same for equal ones."""
        number = self._names.setdefault(key, len(self._names))
        if number == len(self._bits):
            self._bits.append(self._draw.getrandbits(64))
        return number


def _cost_ahead(state: PartialProgram, move: Move) -> float:
    """What `prior_cost` would add if nothing came after this move: idle inputs, unused fns, streams nobody takes."""
    assert move.fn is not None
    used, unused = state.used | move.mask, state.unused & ~(1 << move.fn.index)
    for place in move.branch:
        unused &= ~(1 << place) if place >= 0 else -1
    idle = state.input_bits & ~used
    dangling = (1 << len(state.streams)) - 1 & ~(state.input_bits | used)
    return 2.0 * idle.bit_count() + unused.bit_count() + dangling.bit_count()
