"""A given program as a sequence of decisions: which move was made, out of which?

The program's checked graph is read back into moves: shape primitives, Zips, Copies and Identities are looked through,
an expert block is one move. A step that no move stands for (an expert chain of several fns, say) is skipped: its
stream exists for the steps after it, but nothing is learned from how it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.step.sampler.kinds import Kind
from opsmith.targets.step.sampler.moves import Enumerator
from opsmith.targets.step.sampler.orders import HAND_ON
from opsmith.targets.step.sampler.plans import Plan
from opsmith.targets.step.sampler.records import Move, State, Stream


@dataclass(frozen=True)
class Choice:
    """One decision of a program: the candidates in `state` and the one taken."""

    state: State
    candidates: tuple[Move, ...]
    chosen: int


@dataclass(frozen=True)
class _Part:
    """A stream inside an expert block: the data and index it was routed by, its place, and the fn it went through."""

    node: Node
    place: int
    fn: int = HAND_ON


@dataclass
class _Reader:
    """`sources`: per stream of the graph the streams of the state it consists of; `parts`: those inside a block."""

    enumerator: Enumerator
    graph: Graph
    state: State
    sources: dict[int, tuple[int, ...]] = field(default_factory=dict)
    parts: dict[int, _Part] = field(default_factory=dict)

    def choices(self) -> Iterator[Choice]:
        self.sources = {number: (number,) for number in range(len(self.graph.inputs))}
        for node in self.graph.nodes:
            wanted = self._wanted(node)
            if wanted is None:
                self._look_through(node)
            else:
                yield from self._step(node, wanted)
        yield from self._return()

    # ---------------------------------------------------------------- what a node is
    def _wanted(self, node: Node) -> tuple[object, ...] | None:
        """(primitive, fn, b, arguments, branch) of a move; None for what is looked through."""
        if node.fn is None or any(stream in self.parts for stream in node.operands[: 1 if node.op == "Map" else 0]):
            return None
        index = self.enumerator.problem.spec.fns.index(node.fn)
        if node.op == "Merge":
            return self._block(node, index)
        args = self._arguments(node.operands)
        return (node.op, index, node.ints[0] if node.ints else 0, args, ())

    def _arguments(self, operands: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(source for stream in operands for source in self.sources.get(stream, (-1,)))

    def _block(self, node: Node, index: int) -> tuple[object, ...]:
        parts = [self.parts.get(stream) for stream in node.operands[:-1]]
        first = parts[0]
        if first is None or any(part is None or part.place != i for i, part in enumerate(parts)):
            return ("Expert", index, -1, (), ())
        args = self._arguments(first.node.operands)
        return ("Expert", index, None, args, tuple(part.fn for part in parts if part is not None))

    def _look_through(self, node: Node) -> None:
        if node.op == "Partition":
            self.parts |= {stream: _Part(node, place) for place, stream in enumerate(node.results)}
            return
        inside = [self.parts[stream] for stream in node.operands if stream in self.parts]
        if inside:
            self._inside(node, inside[0])
            return
        operands = node.operands[:1] if node.op == "RepeatRef" else node.operands
        for stream in node.results:
            self.sources[stream] = self._arguments(operands)

    def _inside(self, node: Node, part: _Part) -> None:
        """A node within an expert block: at most one Map per place can be expressed."""
        if node.op in ("Copy", "Identity"):
            self.parts |= dict.fromkeys(node.results, part)
        elif node.op == "Map" and node.fn is not None and part.fn == HAND_ON and len(node.operands) == 1:
            fn = self.enumerator.problem.spec.fns.index(node.fn)
            self.parts[node.results[0]] = _Part(part.node, part.place, fn)
        elif node.op in ("Map", "Zip"):
            self._inside_pair(node)
        else:
            self.parts |= dict.fromkeys(node.results, _Part(part.node, -1))

    def _inside_pair(self, node: Node) -> None:
        """Streams of several Partitions by one index, joined: as if the data had been zipped before."""
        parts = [self.parts.get(stream) for stream in node.operands]
        first = parts[0]
        known = [part for part in parts if part is not None]
        joined = (
            first is not None
            and len(known) == len(parts)
            and all(
                part.place == first.place and part.fn == HAND_ON and self._index(part) == self._index(first)
                for part in known
            )
        )
        place = first.place if joined and first is not None else -1
        data = tuple(stream for part in known for stream in part.node.operands[:-1])
        merged = Node("Partition", (*data, known[0].node.operands[-1]), (), node.line)
        fn = self.enumerator.problem.spec.fns.index(node.fn) if node.fn is not None else HAND_ON
        self.parts[node.results[0]] = _Part(merged, place, fn)

    def _index(self, part: _Part) -> tuple[int, ...]:
        return self._arguments(part.node.operands[-1:])

    # ---------------------------------------------------------------- decisions
    def _step(self, node: Node, wanted: tuple[object, ...]) -> Iterator[Choice]:
        kind = self.enumerator.problem.kinds.of(self.graph.types[node.results[0]])
        dims = None
        if node.op in ("Map", "Accum", "Scan"):
            first = self.graph.types[node.operands[0]]
            dims = tuple(map(self.enumerator.problem.kinds.number, first.dims))
        candidates = (*self.state.moves, *self.enumerator.returns(self.state))
        fitting = [i for i, move in enumerate(candidates) if move.fn is not None and _matches(move, wanted)]
        exact = [i for i in fitting if dims is None or candidates[i].plan.dims == dims]
        if fitting:
            chosen = (exact or fitting)[0]
            yield Choice(self.state, candidates, chosen)
            self.state = self.enumerator.after(self.state, candidates[chosen], kind)
        else:
            self.state = self._forced(node, wanted, kind)
        self.sources[node.results[0]] = (len(self.state.streams) - 1,)

    def _forced(self, node: Node, wanted: tuple[object, ...], kind: Kind) -> State:
        """The state after a step that is no move."""
        assert node.fn is not None
        problem = self.enumerator.problem
        fn = problem.fns[problem.spec.fns.index(node.fn)]
        args = tuple(arg for arg in self._arguments(node.operands) if arg >= 0)
        op = "Expert" if node.op == "Merge" else node.op
        return self.enumerator.after(self.state, Move(Plan(op, 0, (), (), 0.0, kind), fn, args), kind)

    def _return(self) -> Iterator[Choice]:
        wanted = tuple(self.sources.get(stream, (-1,)) for stream in self.graph.outputs)
        candidates = (*self.state.moves, *self.enumerator.returns(self.state))
        for chosen, move in enumerate(candidates):
            if move.fn is None and tuple(args for args, _ in move.outputs) == wanted:
                yield Choice(self.state, candidates, chosen)
                return


def _matches(move: Move, wanted: tuple[object, ...]) -> bool:
    op, index, b, args, branch = wanted
    same = move.fn is not None and (move.plan.op, move.fn.index, move.args, move.branch) == (op, index, args, branch)
    return same and (b is None or move.plan.b == b)


def replay(enumerator: Enumerator, graph: Graph) -> list[Choice]:
    """The decisions of a program that was checked against the enumerator's task."""
    return list(_Reader(enumerator, graph, enumerator.start()).choices())


__all__ = ["Choice", "Stream", "replay"]
