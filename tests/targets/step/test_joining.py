"""Programs of parts, however they are written, join to one that passes."""

from __future__ import annotations

import textwrap

import pytest

from opsmith.judging.verifier import verify
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets.step import STEP

TASK = STEP.read_task(
    textwrap.dedent(
        """
        inputs:
          - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
          - {name: E1, dtype: fp32, dims: [M, N], data_gen: torch.randn}
        fns:
          - {name: Add, func_name: fn_add, apply: "return [input[0] + input[1]]", input_dtype: [fp32, fp32], output_dtype: fp32}
          - {name: Mul, func_name: fn_mul, apply: "return [input[0] * input[1]]", input_dtype: [fp32, fp32], output_dtype: fp32}
          - {name: Exp, func_name: fn_exp, apply: "return [torch.exp(input[0])]", input_dtype: fp32, output_dtype: fp32}
          - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32, output_dtype: fp32}
        outputs:
          - {name: S0, dtype: fp32, dims: [N], data_transform: ["total = input_data['E0'] + input_data['E1']\\n(total * total.exp()).sum(1)"]}
          - {name: S1, dtype: fp32, dims: [M, N], data_transform: ["total * total.exp()"]}
        """
    ),
    "energy_0",
)
GRID = ("M", "N")
SPLIT = Split(
    (
        PlanNode(
            "sums",
            ("E0", "E1"),
            (Border("total", "fp32", GRID), Border("power", "fp32", GRID)),
            "total = input_data['E0'] + input_data['E1']\npower = total.exp()\n",
        ),
        PlanNode(
            "both",
            ("total", "power"),
            (Border("S1", "fp32", GRID),),
            "S1 = input_data['total'] * input_data['power']\n",
        ),
        PlanNode("ends", ("S1", "total"), (Border("S0", "fp32", ("N",)),), "S0 = input_data['S1'].sum(1)\n"),
    ),
    ("S0", "S1"),
)
PLAIN = {
    "sums": "E2 = step.Map(fn=fn_add).apply((E0, E1))\nE3, E4 = step.Copy().apply(E2)\nreturn E3, step.Map(fn=fn_exp).apply(E4)",
    "both": "E2 = step.Map(fn=fn_mul).apply((total, power))\nreturn E2",
    "ends": "return step.Accum(fn=fn_sum, b=1).apply(S1)",
}
NASTY = {
    "a returned stream is consumed as well": {
        "sums": "E2 = step.Map(fn=fn_add).apply((E0, E1))\nreturn E2, step.Map(fn=fn_exp).apply(E2)"
    },
    "inputs, fns and sizes are bound anew": {
        "sums": """
        "a docstring"
        E0 = step.Map(fn=fn_add).apply((E0, E1))  # E0 again
        fn_mul = fn_exp
        M = [step.Copy()]
        E1, total = M[0].apply(input=E0, name="E1")
        power = step.Map(fn=fn_mul).apply(total)
        return E1, power
        """
    },
    "loops, lists and targets of tuples": {
        "sums": """
        pairs = [(E0, E1)]
        for a, (b, power) in zip(pairs, [step.Copy().apply(step.Map(fn=fn_add).apply(p)) for p in pairs]):
            E2 = []
            E2.append(b)
        return [x for x in [E2[0], step.Map(fn=fn_exp).apply(power)]]
        """,
        "both": "E2 = [step.Map(fn=f).apply((total, power)) for f in (fn_mul,)]\nreturn E2",
    },
    "a single output in a list": {"ends": "E2 = [step.Accum(fn=fn_sum, b=1).apply(S1)]\nreturn E2"},
    "names of other parts": {
        "both": "E0 = total\nsums_E2 = power\nboth_E0 = step.Map(fn=fn_mul).apply((E0, sums_E2))\nreturn both_E0",
        "ends": "S0 = step.Accum(fn=fn_sum, b=1).apply(S1)\nreturn S0,",
    },
    "a single output of a copied pair": {
        "ends": "a, b = step.Copy().apply(S1)\nreturn (step.Accum(fn=fn_sum, b=1).apply(b))"
    },
}


@pytest.mark.parametrize("name", NASTY)
def test_programs_of_parts_that_pass_join_to_one_that_passes(name):
    sources = {key: textwrap.dedent(text).strip("\n") for key, text in {**PLAIN, **NASTY[name]}.items()}
    for child in STEP.make_children(TASK, SPLIT):
        assert verify(child, sources[child.id.rpartition(".")[2]]).passed, child.id
    joined = STEP.join_programs(TASK, SPLIT, sources)
    verdict = verify(TASK, joined)
    assert verdict.passed, f"{verdict.message}\n{joined}"


def test_an_input_that_a_part_returns_as_it_is_goes_on_as_a_stream():
    split = Split(
        (
            PlanNode(
                "first",
                ("E0", "E1"),
                (Border("same", "fp32", GRID), Border("total", "fp32", GRID)),
                "same = input_data['E0']\ntotal = same + input_data['E1']\n",
            ),
            PlanNode(
                "second",
                ("same", "total", "E0"),
                (Border("S0", "fp32", GRID),),
                "S0 = input_data['same'] * input_data['total'] + input_data['E0']\n",
            ),
        ),
        ("S0",),
    )
    text = TASK.text[: TASK.text.index("outputs:")]
    outputs = "outputs:\n  - {name: S0, dtype: fp32, dims: [M, N], data_transform: [\"input_data['E0'] * (input_data['E0'] + input_data['E1']) + input_data['E0']\"]}\n"
    task = STEP.read_task(text + outputs, "same_0")
    sources = {
        "first": "E2 = step.Map(fn=fn_add).apply((E0, E1))\nreturn E0, E2",
        "second": "E2 = step.Map(fn=fn_mul).apply((same, total))\nreturn step.Map(fn=fn_add).apply((E2, E0))",
    }
    verdict = verify(task, STEP.join_programs(task, split, sources))
    assert verdict.passed, verdict.message
