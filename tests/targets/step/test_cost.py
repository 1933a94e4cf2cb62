"""The cost model, against the worked example of the reference and its table."""

from __future__ import annotations

import json

import pytest
import torch

from opsmith.errors import TaskError
from opsmith.targets import TaskFault
from opsmith.targets.step.cost import cost_of, estimate_cost, measure_cost
from opsmith.targets.step.cost.fns import OpCounter
from opsmith.targets.step.cost.model import CostReport, CostRow
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import TaskSpec

GATE = """\
global: E_value = 3
inputs: [{name: E0, dtype: fp32, dims: [D, N], data_gen: torch.rand}]
parameters: [{name: Wg, dtype: fp32, dims: [E, D], data_gen: torch.rand}]
fns:
  - name: Gate
    func_name: fn_gate
    apply: return [input[0] @ input_data['Wg']]
    input_dtype: Buffer(fp32, [D])
    output_dtype: Buffer(fp32, [E])
outputs:
  - {name: S0, dtype: fp32, dims: [E, N], data_transform: ["input_data['E0'] @ input_data['Wg']"]}
"""
GATE_IMPL = """\
E1 = step.Bufferize(a=1).apply(E0)
E2 = step.Map(fn=fn_gate).apply(E1)
E3 = step.Streamify().apply(E2)
return E3
"""

ROUTE = """\
global: |
  M_value = 3
  E_value = 2
inputs:
  - {name: E0, dtype: fp32, dims: [M], data_gen: torch.rand}
  - {name: E1, dtype: "Multihot(fp32, E)", dims: [M], min: 1, max: 2}
fns:
  - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32,
     output_dtype: fp32}
outputs: [{name: S0, dtype: fp32, dims: [M], data_transform: ["input_data['E0'] * input_data['E1'].sum(1)"]}]
"""
ROUTE_IMPL = """\
E1_0, E1_1 = step.Copy().apply(E1)
E2 = step.Partition(N=E).apply((E0, E1_0))
return step.Merge(fn=fn_sum).apply((E2, E1_1))
"""


def _row(report: CostReport, name: str) -> CostRow:
    return next(row for row in report.rows if row.name == name)


def _static(spec: TaskSpec, impl: str, **sizes: int) -> CostReport:
    graph = check_program(spec, impl).graph
    assert graph is not None
    return estimate_cost(
        spec, graph, {**spec.sizes, **{f"?{key[1:].replace('_', '.')}": n for key, n in sizes.items()}}, {}
    )


def test_the_worked_example_costs_what_the_reference_says() -> None:
    report = measure_cost(read_spec(GATE), GATE_IMPL)
    assert (report.off_chip_bytes, report.on_chip_bytes, report.cycles) == (724, 1364, 132)
    assert report.flops == 7 * 96
    assert report.operational_intensity == pytest.approx(0.928, abs=5e-4)
    assert [(row.name, row.off_chip_bytes, row.on_chip_bytes, row.busy, row.latency) for row in report.rows] == [
        ("Load E0", 448, 8, 112, 1),
        ("Bufferize", 0, 132, 112, 16),
        ("Map(fn_gate)", 0, 1216, 7, 1),
        ("parameter Wg", 192, 0, 0, 0),
        ("Streamify", 0, 0, 21, 1),
        ("Store S0", 84, 8, 21, 1),
    ]


def test_routing_takes_a_cycle_per_selector_and_one_per_routed_item() -> None:
    report = _static(read_spec(ROUTE), ROUTE_IMPL, d0_0=2, d0_1=2)
    assert (_row(report, "Partition").busy, _row(report, "Merge(fn_sum)").busy) == (7, 7)
    assert (_row(report, "Partition").latency, _row(report, "Merge(fn_sum)").latency) == (2, 2)
    assert _row(report, "Load E1").off_chip_bytes == 3 * 2  # one byte per entry of a Multihot


def test_sizes_that_a_partition_makes_are_measured() -> None:
    spec = read_spec(ROUTE)
    measured = measure_cost(spec, ROUTE_IMPL)
    routed = measured.rows[3].busy
    assert 3 + 3 <= routed <= 3 + 6
    assert measured.flops == routed - 3


@pytest.mark.parametrize(
    ("program", "name", "row"),
    [
        # reference 10's table; E0: fp32 [M, N], M = 5, N = 7, D = 16: on-chip bytes, busy, latency
        ("step.Accum(fn=fn_sum, b=1).apply(E0)", "Accum(fn_sum)", (4, 35, 5)),
        ("step.Scan(fn=fn_sum, b=1).apply(E0)", "Scan(fn_sum)", (4, 35, 1)),
        ("step.Map(fn=fn_neg).apply(E0)", "Map(fn_neg)", (0, 35, 1)),
        ("step.Bufferize(a=1).apply(E0)", "Bufferize", (4 + 2 * 5 * 4, 35, 5)),
        ("step.Repeat(n=D).apply(E0)", "Repeat", (4, 35 * 16, 1)),
        ("step.Promote(b=0).apply(E0)", "Promote", (0, 35, 1)),
        ("step.Flatten(L=[1]).apply(E0)", "Flatten", (0, 35, 1)),
        ("step.Reshape(S=N, L=[1]).apply(E0)", "Reshape", (0, 35, 1)),
        ("step.Copy().apply(E0)[0]", "Copy", (0, 35, 1)),
        ("step.Identity().apply(E0)", "Identity", (0, 0, 0)),
    ],
)
def test_each_primitive_costs_what_the_table_says(program: str, name: str, row: tuple[int, int, int]) -> None:
    found = _row(_static(_task(program), f"return {program}"), name)
    assert (found.on_chip_bytes, found.busy, found.latency) == row


def _task(program: str) -> TaskSpec:
    """A task whose output has the type that the program returns."""
    dims = {"Accum": "N", "Bufferize": "N", "Repeat": "D, M, N", "Promote": "1, M, N", "Flatten": "M*N"}
    dims |= {"Reshape": "M, N, 1"}
    op = program.removeprefix("step.").partition("(")[0]
    dtype = "Buffer(fp32, [M])" if op == "Bufferize" else "fp32"
    return read_spec(f"""
inputs: [{{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}}]
fns:
  - {{name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32,
     output_dtype: fp32}}
  - {{name: Neg, func_name: fn_neg, apply: "return [-input[0]]", input_dtype: fp32, output_dtype: fp32}}
outputs: [{{name: S0, dtype: "{dtype}", dims: [{dims.get(op, "M, N")}], data_transform: ["1"]}}]
""")


def test_inputs_that_are_not_used_are_not_loaded() -> None:
    spec = read_spec(GATE.replace("inputs: [", "inputs: [{name: X, dtype: fp32, dims: [K], data_gen: torch.rand}, "))
    assert measure_cost(spec, GATE_IMPL).off_chip_bytes == 724


def test_figures_are_json() -> None:
    figures = json.loads(json.dumps(cost_of(read_spec(GATE), GATE_IMPL)))
    assert (figures["off_chip_bytes"], figures["cycles"], figures["operational_intensity"]) == (724, 132, 0.928)
    assert figures["nodes"][2]["name"] == "Map(fn_gate)"


def test_a_wrong_program_has_no_cost() -> None:
    with pytest.raises(TaskError, match="the checker refuses"):
        cost_of(read_spec(GATE), "return E0")


def test_a_fn_that_fails_is_its_authors_fault() -> None:
    with pytest.raises(TaskFault, match="fn_gate"):
        cost_of(read_spec(GATE.replace("input[0] @", "input[1] @")), GATE_IMPL)


VECTOR, MATRIX = torch.rand(16), torch.rand(16, 3)


@pytest.mark.parametrize(
    ("text", "flops"),
    [
        ("v @ m", 2 * 16 * 3),
        ("v @ v", 2 * 16),
        ("m.T @ m", 2 * 3 * 16 * 3),
        ("torch.einsum('k,ke->e', v, m)", 2 * 16 * 3),
        ("torch.nn.functional.linear(v, m.T)", 2 * 16 * 3),
        ("v + 1", 16),
        ("v / 2 - v", 32),
        ("torch.where(v > 0, v, -v)", 48),
        ("torch.exp(torch.maximum(v, v))", 32),
        ("torch.sigmoid(v)", 64),
        ("torch.nn.functional.silu(v)", 80),
        ("torch.nn.functional.gelu(v)", 128),
        ("torch.softmax(v, 0)", 80),
        ("v.sum()", 16),
        ("m.mean(0)", 48),
        ("v.max(0).values", 16),
        ("torch.topk(v, 3)", 64),
        ("torch.sort(m, dim=0)", 48 * 4),
        ("torch.argsort(m[:1])", 3 * 2),
        ("torch.cat([v[None], v.view(1, 16)]).transpose(0, 1)[2:4].double()", 0),
        ("torch.zeros(3) if v is not None else 0", 0),
    ],
)
def test_operations_are_counted(text: str, flops: int) -> None:
    names = {"torch": torch, "v": VECTOR, "m": MATRIX}
    with OpCounter() as counter:
        eval(text, names)
    assert counter.flops == flops
