"""The cost of a program, measured where it must be: one run at the task's own sizes tells what a Partition makes.

Runs the task's own functions and data (author's code: in worker processes only). The model is `model`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from opsmith.errors import TaskError
from opsmith.problems.precision import default_dtype, default_of
from opsmith.targets.step.cost.fns import measure_fn
from opsmith.targets.step.cost.model import HIGHER_ORDER, CostReport, FnCost, estimate_cost
from opsmith.targets.step.execution.bound import BoundDraw, draw_bound
from opsmith.targets.step.execution.run import RunError, execute_program
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.graph import Graph, OpNode
from opsmith.targets.step.language.spec import TaskSpec

SEED = 42

__all__ = ["CostReport", "FnCost", "cost_of", "estimate_cost", "measure_cost"]


def cost_of(spec: TaskSpec, source: str) -> dict[str, Any]:
    """Figures of a program at the task's own sizes and data: totals by name, then `nodes`.

    Errors  TaskError for a program that the checker refuses or that fails while running; TaskFault for a fn that fails
    """
    return measure_cost(spec, source).list_figures()


def measure_cost(spec: TaskSpec, source: str) -> CostReport:
    """The cost report of a program at the task's own sizes, dynamic sizes as its data at seed 42 makes them."""
    report = check_program(spec, source)
    if report.graph is None:
        details = "\n".join(map(str, report.errors))
        raise TaskError(f"no cost: the checker refuses the program\n{details}", report.errors)
    bindings = draw_bound(spec, {}, SEED)
    try:
        streams = _run_streams(spec, report.graph, bindings)
    except RunError as error:
        raise TaskError(f"no cost: the program fails\n{error}", [error.diagnostic]) from error
    sizes = {**bindings.sizes, **_dynamic_sizes(report.graph, streams)}
    return estimate_cost(spec, report.graph, sizes, _fn_costs(report.graph, bindings, streams))


# -------------------------------------------------------------------- one run
Streams = Mapping[int, Sequence[Tensor]]


def _run_streams(spec: TaskSpec, graph: Graph, bindings: BoundDraw) -> Streams:
    """The data of what is measured: the streams of every Partition, the operands of every fn."""
    needed = {stream for node in graph.nodes if node.op == "Partition" for stream in node.results}
    needed |= {stream for node in graph.nodes if node.op in HIGHER_ORDER for stream in node.operands}
    numbers = tuple(sorted(needed))
    work = spec.problem.count_numbers(bindings.sizes)
    with default_dtype(default_of(False)):
        return dict(zip(numbers, execute_program(replace(graph, outputs=numbers), bindings, work), strict=True))


def _dynamic_sizes(graph: Graph, streams: Streams) -> dict[str, int]:
    """How many items each expert received."""
    return {
        str(graph.types[stream].dims[-1]): len(streams[stream][0])
        for node in graph.nodes
        if node.op == "Partition"
        for stream in node.results
    }


def _fn_costs(graph: Graph, bindings: BoundDraw, streams: Streams) -> dict[str, FnCost]:
    """The cost of one call of each fn that the program uses."""
    costs: dict[str, FnCost] = {}
    for node in graph.nodes:
        if node.fn is not None and node.fn.func_name not in costs:
            costs[node.fn.func_name] = measure_fn(node.fn, bindings, _first_element(graph, node, streams))
    return costs


def _first_element(graph: Graph, node: OpNode, streams: Streams) -> list[Tensor] | None:
    """The first element that a node reads; None when there is none."""
    operands = node.operands[:1] if node.op == "Merge" else node.operands
    pairs = [(tensor, len(graph.types[stream].dims)) for stream in operands for tensor in streams[stream]]
    if any(0 in tensor.shape[:rank] for tensor, rank in pairs):
        return None
    return [tensor[(0,) * rank].clone() for tensor, rank in pairs]
