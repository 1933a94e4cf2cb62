"""How is a STeP program drawn? Its graph with each stream's type on the edge, for `opsmith.targets.programs`."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.targets.programs import Dataflow, Edge, Node
from opsmith.targets.step.language import graph
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import TaskSpec


def dataflow_of(spec: TaskSpec, source: str) -> Dataflow | None:
    """The graph of a well-typed program, also of one that consumes a stream twice; None of any other text."""
    unrolled = check_program(spec, source).unrolled
    return None if unrolled is None else _draw_graph(spec, unrolled)


def _draw_graph(spec: TaskSpec, program: graph.Graph) -> Dataflow:
    inputs = [Node(f"i{number}", name, kind="input") for number, name in enumerate(program.inputs)]
    operations = [Node(f"n{number}", node.op, _write_arguments(node)) for number, node in enumerate(program.nodes)]
    outputs = [Node(f"o{number}", output.name, kind="output") for number, output in enumerate(spec.outputs)]
    maker = {stream: node.id for stream, node in enumerate(inputs)}
    maker |= {stream: f"n{number}" for number, node in enumerate(program.nodes) for stream in node.results}
    edges = [
        Edge(maker[stream], target, str(program.types[stream]), operand)
        for stream, target, operand in _list_uses(program)
    ]
    used = {stream for stream, _, _ in _list_uses(program)}
    dangling = [stream for stream in maker if stream not in used]
    unused = [Node(f"u{stream}", "unused", kind="unused") for stream in dangling]
    edges += [Edge(maker[stream], f"u{stream}", str(program.types[stream])) for stream in dangling]
    return Dataflow((*inputs, *operations, *outputs, *unused), tuple(edges))


def _list_uses(program: graph.Graph) -> Iterator[tuple[int, str, int]]:
    """(stream, the node that consumes it, the operand's place there) of the whole program."""
    for number, node in enumerate(program.nodes):
        several = len(node.operands) > 1
        yield from ((stream, f"n{number}", place if several else 0) for place, stream in enumerate(node.operands, 1))
    yield from ((stream, f"o{number}", 0) for number, stream in enumerate(program.outputs))


def _write_arguments(node: graph.OpNode) -> str:
    """`fn_exp, b=1`: the arguments as they were written, the function by its name alone."""
    return ", ".join(value if key == "fn" else f"{key}={value}" for key, value in node.list_arguments())
