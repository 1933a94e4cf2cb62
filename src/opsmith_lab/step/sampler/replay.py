"""A given program as a sequence of decisions: which move was made, out of which.

The program's checked graph is read back into moves: shape primitives, Zips, Copies and Identities are looked through,
an expert block is one move. A step that no move stands for (an expert chain of several fns, say) is skipped: its
stream exists for the steps after it, but nothing is learned from how it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith_lab.step.sampler.kinds import StreamKind
from opsmith_lab.step.sampler.moves import Enumerator
from opsmith_lab.step.sampler.orders import HAND_ON
from opsmith_lab.step.sampler.plans import ApplicationPlan
from opsmith_lab.step.sampler.records import Move, PartialProgram


@dataclass(frozen=True)
class Choice:
    """One decision of a program: the candidates in `state` and the one taken."""

    state: PartialProgram
    candidates: tuple[Move, ...]
    chosen: int


@dataclass(frozen=True)
class _Branch:
    """A stream inside an expert block: the data and index it was routed by, its place, and the fn it went through."""

    node: OpNode
    place: int
    fn: int = HAND_ON


@dataclass
class _Reader:
    """`sources`: per stream of the graph the streams of the state it consists of; `branches`: those inside a block."""

    enumerator: Enumerator
    graph: Graph
    state: PartialProgram
    sources: dict[int, tuple[int, ...]] = field(default_factory=dict)
    branches: dict[int, _Branch] = field(default_factory=dict)

    def read_choices(self) -> Iterator[Choice]:
        self.sources = {number: (number,) for number in range(len(self.graph.inputs))}
        for node in self.graph.nodes:
            signature = self._describe_move(node)
            if signature is None:
                self._look_through(node)
            else:
                yield from self._choose_step(node, signature)
        yield from self._choose_return()

    # ---------------------------------------------------------------- what a node is
    def _describe_move(self, node: OpNode) -> tuple[object, ...] | None:
        """(primitive, fn, b, arguments, branch) of a move; None for what is looked through."""
        if node.fn is None or any(stream in self.branches for stream in node.operands[: 1 if node.op == "Map" else 0]):
            return None
        index = self.enumerator.task.spec.fns.index(node.fn)
        if node.op == "Merge":
            return self._describe_block(node, index)
        args = self._trace_sources(node.operands)
        return (node.op, index, node.ints[0] if node.ints else 0, args, ())

    def _trace_sources(self, operands: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(source for stream in operands for source in self.sources.get(stream, (-1,)))

    def _describe_block(self, node: OpNode, index: int) -> tuple[object, ...]:
        branches = [self.branches.get(stream) for stream in node.operands[:-1]]
        first = branches[0]
        if first is None or any(branch is None or branch.place != i for i, branch in enumerate(branches)):
            return ("Expert", index, -1, (), ())
        args = self._trace_sources(first.node.operands)
        return ("Expert", index, None, args, tuple(branch.fn for branch in branches if branch is not None))

    def _look_through(self, node: OpNode) -> None:
        if node.op == "Partition":
            self.branches |= {stream: _Branch(node, place) for place, stream in enumerate(node.results)}
            return
        inside = [self.branches[stream] for stream in node.operands if stream in self.branches]
        if inside:
            self._read_inside(node, inside[0])
            return
        operands = node.operands[:1] if node.op == "RepeatRef" else node.operands
        for stream in node.results:
            self.sources[stream] = self._trace_sources(operands)

    def _read_inside(self, node: OpNode, branch: _Branch) -> None:
        """A node within an expert block: at most one Map per place can be expressed."""
        if node.op in ("Copy", "Identity"):
            self.branches |= dict.fromkeys(node.results, branch)
        elif node.op == "Map" and node.fn is not None and branch.fn == HAND_ON and len(node.operands) == 1:
            fn = self.enumerator.task.spec.fns.index(node.fn)
            self.branches[node.results[0]] = _Branch(branch.node, branch.place, fn)
        elif node.op in ("Map", "Zip"):
            self._read_inside_pair(node)
        else:
            self.branches |= dict.fromkeys(node.results, _Branch(branch.node, -1))

    def _read_inside_pair(self, node: OpNode) -> None:
        """Streams of several Partitions by one index, joined: as if the data had been zipped before."""
        branches = [self.branches.get(stream) for stream in node.operands]
        first = branches[0]
        present = [branch for branch in branches if branch is not None]
        joined = (
            first is not None
            and len(present) == len(branches)
            and all(
                branch.place == first.place
                and branch.fn == HAND_ON
                and self._trace_index(branch) == self._trace_index(first)
                for branch in present
            )
        )
        place = first.place if joined and first is not None else -1
        data = tuple(stream for branch in present for stream in branch.node.operands[:-1])
        merged = OpNode("Partition", (*data, present[0].node.operands[-1]), (), node.line)
        fn = self.enumerator.task.spec.fns.index(node.fn) if node.fn is not None else HAND_ON
        self.branches[node.results[0]] = _Branch(merged, place, fn)

    def _trace_index(self, branch: _Branch) -> tuple[int, ...]:
        return self._trace_sources(branch.node.operands[-1:])

    # ---------------------------------------------------------------- decisions
    def _choose_step(self, node: OpNode, signature: tuple[object, ...]) -> Iterator[Choice]:
        kind = self.enumerator.task.kinds.encode_stream(self.graph.types[node.results[0]])
        dims = None
        if node.op in ("Map", "Accum", "Scan"):
            first = self.graph.types[node.operands[0]]
            dims = tuple(map(self.enumerator.task.kinds.encode_dim, first.dims))
        candidates = (*self.state.moves, *self.enumerator.list_returns(self.state))
        fitting = [i for i, move in enumerate(candidates) if move.fn is not None and _matches_move(move, signature)]
        exact = [i for i in fitting if dims is None or candidates[i].plan.dims == dims]
        if fitting:
            chosen = (exact or fitting)[0]
            yield Choice(self.state, candidates, chosen)
            self.state = self.enumerator.apply_move(self.state, candidates[chosen], kind)
        else:
            self.state = self._force_step(node, signature, kind)
        self.sources[node.results[0]] = (len(self.state.streams) - 1,)

    def _force_step(self, node: OpNode, signature: tuple[object, ...], kind: StreamKind) -> PartialProgram:
        """The state after a step that is no move."""
        assert node.fn is not None
        task = self.enumerator.task
        fn = task.fns[task.spec.fns.index(node.fn)]
        args = tuple(arg for arg in self._trace_sources(node.operands) if arg >= 0)
        op = "Expert" if node.op == "Merge" else node.op
        return self.enumerator.apply_move(self.state, Move(ApplicationPlan(op, 0, (), (), 0.0, kind), fn, args), kind)

    def _choose_return(self) -> Iterator[Choice]:
        sources = tuple(self.sources.get(stream, (-1,)) for stream in self.graph.outputs)
        candidates = (*self.state.moves, *self.enumerator.list_returns(self.state))
        for chosen, move in enumerate(candidates):
            if move.fn is None and tuple(args for args, _ in move.outputs) == sources:
                yield Choice(self.state, candidates, chosen)
                return


def _matches_move(move: Move, signature: tuple[object, ...]) -> bool:
    op, index, b, args, branch = signature
    same = move.fn is not None and (move.plan.op, move.fn.index, move.args, move.branch) == (op, index, args, branch)
    return same and (b is None or move.plan.b == b)


def replay_program(enumerator: Enumerator, graph: Graph) -> list[Choice]:
    """The decisions of a program that was checked against the enumerator's task."""
    return list(_Reader(enumerator, graph, enumerator.start_program()).read_choices())
