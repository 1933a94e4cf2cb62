"""Programs that differ from the oracle in the order of summation only are right, at every shape set, `large` included."""

import ast

import pytest
import torch
import yaml

from opsmith.judging.verifier import verify
from opsmith.suites import task_files
from opsmith.targets import get_target

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in task_files("step26")}

# Last term first, one term at a time: of all orders the one whose rounding errors grow fastest.
BACKWARDS = """
def product(x, weight):
    terms = x.reshape(-1, *[1] * (weight.dim() - 1)) * weight
    return terms.flip(0).cumsum(0)[-1]
"""
WITH_PRODUCTS = [task for task, text in TEXTS.items() if any("@" in fn["apply"] for fn in yaml.safe_load(text)["fns"])]

# The references of the products have an order of their own (BLAS); here they sum backwards, the oracles forwards.
REFERENCES = {
    "bmm_0": "(input_data['E0'][:, :, :, None] * input_data['E1'][:, :, None]).flip(1).cumsum(1)[:, -1]",
    "bmm_1": "(input_data['E0'][:, :, :, None] * input_data['E1'][:, None]).flip(2).cumsum(2)[:, :, -1]",
    "bmm_2": "(input_data['E0'][:, :, None] * input_data['E1'][:, None]).flip(3).cumsum(3)[..., -1]",
    "gemm_0": "(input_data['E0'] * input_data['E1']).flip(0).cumsum(0)[-1]",
    "gemm_1": "(input_data['E0'] * input_data['E1']).flip(0).cumsum(0)[-1]",
    "gemm_2": "(input_data['E0'] * input_data['E1'][:, None]).flip(2).cumsum(2)[..., -1]",
}
LARGE = {"M": 8, "N": 16, "K": 64, "D": 16}  # the longest sum, and few enough products at once

# The variance as mean of squares less square of mean, which cancels where a row is shifted.
VARIANCES = {
    "norm_0": """
E1, E2 = step.Copy().apply(E0)
E3, E4 = step.Copy().apply(E1)
E5, E6 = step.Copy().apply(step.Map(fn=fn_mean).apply(E3))
E7 = step.Map(fn=fn_mean).apply(step.Map(fn=fn_square).apply(E4))
E8 = step.Map(fn=fn_minus).apply((E7, step.Map(fn=fn_square).apply(E5)))
E9 = step.Map(fn=fn_sqrt).apply(step.Map(fn=fn_addeps).apply(E8))
return step.Map(fn=fn_div).apply((step.Map(fn=fn_minus).apply((E2, E6)), E9))
""",
    "norm_1": """
E1, E2 = step.Copy().apply(E0)
E3, E4 = step.Copy().apply(E1)
E5, E6 = step.Copy().apply(step.Map(fn=fn_divbyD).apply(step.Accum(fn=fn_add, b=1).apply(E3)))
E7 = step.Map(fn=fn_divbyD).apply(step.Accum(fn=fn_add, b=1).apply(step.Map(fn=fn_square).apply(E4)))
E8 = step.Map(fn=fn_minus).apply((E7, step.Map(fn=fn_square).apply(E5)))
E9 = step.Repeat(n=D).apply(step.Map(fn=fn_sqrt).apply(step.Map(fn=fn_addeps).apply(E8)))
return step.Map(fn=fn_div).apply((step.Map(fn=fn_minus).apply((E2, step.Repeat(n=D).apply(E6))), E9))
""",
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class _Backwards(ast.NodeTransformer):
    """`x @ W` becomes `product(x, W)`."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.Call(ast.Name("product", ast.Load()), [node.left, node.right], [])


def judged(task, changed, source=None):
    loaded = get_target("step").read_task(yaml.safe_dump(changed, sort_keys=False), task)
    return verify(loaded, source or loaded.impl)


@pytest.mark.parametrize("task", WITH_PRODUCTS)
def test_functions_that_sum_backwards_are_right(task):
    changed = yaml.safe_load(TEXTS[task])
    changed["global"] = changed.get("global", "") + BACKWARDS
    for fn in changed["fns"]:
        fn["apply"] = ast.unparse(_Backwards().visit(ast.parse(fn["apply"])))
    assert any("product(" in fn["apply"] for fn in changed["fns"])
    verdict = judged(task, changed)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("task", REFERENCES)
def test_a_reference_that_sums_backwards_admits_the_oracle(task):
    changed = yaml.safe_load(TEXTS[task])
    changed["outputs"][0]["data_transform"] = [REFERENCES[task]]
    changed["shapes"] = changed.get("shapes", {}) | {"large": LARGE}
    verdict = judged(task, changed)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("task", VARIANCES)
def test_both_ways_to_form_the_variance_are_right(task):
    verdict = judged(task, yaml.safe_load(TEXTS[task]), VARIANCES[task])
    assert verdict.passed, verdict.message
