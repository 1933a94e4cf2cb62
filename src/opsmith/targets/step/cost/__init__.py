"""The cost of a program, measured where it must be: one run at the task's own sizes tells what a Partition makes.

Runs the task's own functions and data (author's code: in worker processes only). The model is `cost_model`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from opsmith.errors import TaskError
from opsmith.targets.step.cost.fns import fn_cost
from opsmith.targets.step.cost.model import HIGHER_ORDER, CostReport, FnCost, cost
from opsmith.targets.step.execution.data import Bindings, draw
from opsmith.targets.step.execution.precision import default_dtype, default_of
from opsmith.targets.step.execution.run import RunError, execute
from opsmith.targets.step.execution.stack import elements
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.graph import Graph, Node
from opsmith.targets.step.language.spec import TaskSpec

SEED = 42

__all__ = ["CostReport", "FnCost", "cost", "cost_of", "measured_cost"]


def cost_of(spec: TaskSpec, source: str) -> dict[str, Any]:
    """Figures of a program at the task's own sizes and data: totals by name, then `nodes`.

    Errors  TaskError for a program that the checker refuses or that fails while running; TaskFault for a fn that fails
    """
    return measured_cost(spec, source).figures()


def measured_cost(spec: TaskSpec, source: str) -> CostReport:
    """The cost report of a program at the task's own sizes, dynamic sizes as its data at seed 42 makes them."""
    report = check_program(spec, source)
    if report.graph is None:
        found = "\n".join(map(str, report.errors))
        raise TaskError(f"no cost: the checker refuses the program\n{found}", report.errors)
    bindings = draw(spec, {}, SEED)
    try:
        streams = _streams(spec, report.graph, bindings)
    except RunError as error:
        raise TaskError(f"no cost: the program fails\n{error}", [error.diagnostic]) from error
    sizes = {**bindings.sizes, **_dynamic_sizes(report.graph, streams)}
    return cost(spec, report.graph, sizes, _fn_costs(report.graph, bindings, streams))


# -------------------------------------------------------------------- one run
Streams = Mapping[int, Sequence[Tensor]]


def _streams(spec: TaskSpec, graph: Graph, bindings: Bindings) -> Streams:
    """The data of what is measured: the streams of every Partition, the operands of every fn."""
    wanted = {stream for node in graph.nodes if node.op == "Partition" for stream in node.results}
    wanted |= {stream for node in graph.nodes if node.op in HIGHER_ORDER for stream in node.operands}
    numbers = tuple(sorted(wanted))
    kinds = [*(tensor.type for tensor in (*spec.inputs, *spec.parameters)), *(out.type for out in spec.outputs)]
    work = sum(elements(kind, bindings.sizes) for kind in kinds)
    with default_dtype(default_of(False)):
        return dict(zip(numbers, execute(replace(graph, outputs=numbers), bindings, work), strict=True))


def _dynamic_sizes(graph: Graph, streams: Streams) -> dict[str, int]:
    """How many items each expert received."""
    return {
        str(graph.types[stream].dims[-1]): len(streams[stream][0])
        for node in graph.nodes
        if node.op == "Partition"
        for stream in node.results
    }


def _fn_costs(graph: Graph, bindings: Bindings, streams: Streams) -> dict[str, FnCost]:
    """The cost of one call of each fn that the program uses."""
    found: dict[str, FnCost] = {}
    for node in graph.nodes:
        if node.fn is not None and node.fn.func_name not in found:
            found[node.fn.func_name] = fn_cost(node.fn, bindings, _element(graph, node, streams))
    return found


def _element(graph: Graph, node: Node, streams: Streams) -> list[Tensor] | None:
    """The first element that a node reads; None when there is none."""
    operands = node.operands[:1] if node.op == "Merge" else node.operands
    pairs = [(tensor, len(graph.types[stream].dims)) for stream in operands for tensor in streams[stream]]
    if any(0 in tensor.shape[:rank] for tensor, rank in pairs):
        return None
    return [tensor[(0,) * rank].clone() for tensor, rank in pairs]
