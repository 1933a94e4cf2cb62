"""A task whose own code goes wrong leaves its candidates unjudged and is charged with it, not the verifier."""

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.targets import get_target

FILE = """\
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}
fns:
  - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32, output_dtype: fp32}
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["VALUE"]}
"""
PROGRAM = "return step.Accum(fn=fn_sum, b=1).apply(E0)"
VALUES = (
    "None",
    "input_data['E0'].sum(1).to(torch.complex64)",
    "input_data['E0'].sum(1) / 0 * 0",
    "(lambda f: f(f))(lambda f: f(f))",
    "type('T', (torch.Tensor,), {'__eq__': lambda a, b: True})()",
    "input_data['E0'].sum(1).to_sparse()",
    "exit(3)",
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, deadline=30.0, trust_tasks=True) as pool:
        yield pool


@pytest.mark.parametrize("value", VALUES)
def test_a_reference_that_goes_wrong_is_the_tasks_fault(pool: Pool, value: str) -> None:
    is_charged(pool, FILE.replace("VALUE", value), Boundary.TASK)


def test_a_reference_that_no_memory_holds_is_not_ours(pool: Pool) -> None:
    is_charged(pool, FILE.replace("VALUE", "torch.full((N_value, 10**12), 1.0)"), Boundary.TASK, Boundary.SANDBOX)


@pytest.mark.parametrize("size", [1_000_000, 2_000_000_000])
def test_data_that_no_memory_holds_is_not_ours(pool: Pool, size: int) -> None:
    dims = f"dims: [N, {size}, {size}]"
    text = FILE.replace("VALUE", "None").replace("dims: [N]", dims).replace("[M, N]", f"[M, N, {size}, {size}]")
    is_charged(pool, text, Boundary.TASK, Boundary.SANDBOX)


def is_charged(pool: Pool, text: str, *wanted: Boundary) -> None:
    verdict = pool.verify(get_target("step").read_task(text, "hostile_0"), PROGRAM)
    assert verdict.outcome is Outcome.UNJUDGED, verdict.message
    assert verdict.charged_to in wanted, verdict.message
