"""Wrong programs that must be refused: for each of the 26 tasks, one change at a time to its oracle or to a function.

A row is (where, old text, new text, stage): `program` is the task's `impl`, `fn_x` the body of that function, and
`fn_x.init` its start values; the old text occurs exactly once there. The expected values stay those of the task, so a
changed function stands for a program that computes the same wrong thing. The stage is the one that must refuse.

Left out because they are right: a start value that the first step of attn_0..2 forgets, a merge that keeps only the
last contribution where every token has one expert, operands of a product exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opsmith.records import Stage

PARSE, TYPE, AFFINE, RUN, MATCH = Stage("PARSE"), Stage("TYPE"), Stage("AFFINE"), Stage.RUN, Stage.MATCH

Row = tuple[str, str, str, Stage]


@dataclass(frozen=True)
class Mutant:
    task: str
    where: str
    old: str
    new: str
    stage: Stage

    def __str__(self) -> str:
        return f"{self.task} {self.where}: {_brief(self.old)} -> {_brief(self.new)}"

    def applied(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """The task file's mapping with this change made; the file's own mapping is left alone."""
        if self.where == "program":
            return {**task, "impl": self._change(task["impl"])}
        name, _, part = self.where.partition(".")
        fns = [dict(fn) for fn in task["fns"]]
        fn = next(fn for fn in fns if fn["func_name"] == name)
        if part == "init":
            fn["init"] = self._change(", ".join(map(str, fn["init"]))).split(", ")
            fn["init"] = [value if "inf" in value else float(value) for value in fn["init"]]
        else:
            fn["apply"] = self._change(fn["apply"])
        return {**task, "fns": fns}

    def _change(self, text: str) -> str:
        if text.count(self.old) != 1:
            raise ValueError(f"{self}: the old text occurs {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def _brief(text: str) -> str:
    return " / ".join(line.strip() for line in text.strip().splitlines()) or "(nothing)"


# ---------------------------------------------------------------- changes that several tasks share

KEEP_LAST = ("state[0] + input[0]", "input[0]", MATCH)  # a reduction that forgets what came before
START_AT_1 = ("0", "1", MATCH)
ASCENDING = ("descending=True", "descending=False", MATCH)
TRANSPOSED = ("input_data['W']", "input_data['W'].T", MATCH)
NO_SKIP = (" + input[0]]", "]", MATCH)
TANH_GELU = ("gelu(input[0] @ input_data['W'])", "gelu(input[0] @ input_data['W'], approximate='tanh')", MATCH)
EXCHANGED_MARKS = ("[first, 1 - first]", "[1 - first, first]", MATCH)
NOT_BINARY = ("[first, 1 - first]", "[first / 2, 1 - first]", RUN)


def _top(k: int, *counts: int) -> list[Row]:
    """k off by one, and the smallest instead of the largest."""
    name = f"fn_top{k}"
    return [(name, f"place < {k}", f"place < {count}", MATCH) for count in counts] + [(name, *ASCENDING)]


def _rotation(name: str, halves: bool) -> list[Row]:
    ways = ("x[:half], x[half:]", "x[0::2], x[1::2]")
    return [
        (name, "a * cos - b * sin", "a * cos + b * sin", MATCH),
        (name, "a * sin + b * cos", "b * cos - a * sin", MATCH),
        (name, *(ways if halves else ways[::-1]), MATCH),
        (name, "/ half)", "/ (2 * half))", MATCH),
        ("fn_sum.init", "-1", "0", MATCH),
        ("fn_sum", *KEEP_LAST),
        ("program", "step.Scan(", "step.Accum(", TYPE),
    ]


def _update(affinity: str, order: str, swapped: str) -> list[Row]:
    """An expert that updates and one that passes: what expert_0, expert_2, etoe_2 and etoe_3 share."""
    return [
        ("fn_expert0", *TRANSPOSED),
        ("fn_expert0", *NO_SKIP),
        ("fn_expert0", *TANH_GELU),
        ("fn_expert0", "input[1] * gelu", "gelu", MATCH),
        ("fn_sum.init", *START_AT_1),
        ("program", affinity, affinity.replace("fn_expert0", "fn_expert1"), MATCH),
        ("program", order, swapped, TYPE),
    ]


def _mixture(k: int) -> list[Row]:
    """What etoe_0 and etoe_1 share."""
    return [
        ("fn_gate", "softmax(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        ("fn_expert0", "input[1][0]", "input[1][1]", MATCH),
        ("fn_expert1", "input[1][1] * (", "(", MATCH),
        ("fn_expert2", "gelu(", "(", MATCH),
        ("fn_expert2", "W2_1", "W1_1", MATCH),
        ("fn_sum.init", *START_AT_1),
        ("program", "E14 = step.Map(fn=fn_expert0)", "E14 = step.Map(fn=fn_expert1)", MATCH),
        ("program", "[E14, E15, E16]", "[E16, E15, E14]", TYPE),
        ("program", "[E14, E15, E16]", "[E14, E15]", TYPE),
        ("program", "[E14, E15, E16], E9", "[E14, E15, E16], E8", AFFINE),
        ("program", "step.Zip().apply((E3, E6))", "step.Zip().apply((E6, E3))", TYPE),
        ("program", "step.Zip().apply((E3, E6))", "step.Zip().apply((E3, E5))", AFFINE),
        ("program", "(E10, E8)", "(E10, E6)", TYPE),  # partition by the affinities themselves
        ("program", f"E7 = step.Map(fn=fn_top{k})", f"E7 = step.Map(fn_top{k})", PARSE),
    ]


# ---------------------------------------------------------------- the table

TABLE: dict[str, list[Row]] = {
    "attn_0": [
        ("fn_maxsum", "state[1] * torch.exp(state[0] - top)", "state[1]", MATCH),  # never rescaled
        ("fn_maxsum", "torch.exp(input[0] - top)", "torch.exp(top - input[0])", MATCH),
        ("fn_maxsum", ") / total]", ")]", MATCH),
        ("fn_maxsum", "torch.maximum", "torch.minimum", MATCH),
        ("fn_maxsum.init", "-inf", "0", MATCH),  # all scores far below the start: nothing is left of them
        ("fn_getthird", "input[2]", "input[2] / input[1]", MATCH),  # divided twice
        ("program", "(E0, E1)", "(E1, E0)", TYPE),
        ("program", "step.Accum(", "step.Scan(", TYPE),
        ("program", "b=1", "b=2", TYPE),
        ("program", "return E5", "return E4", TYPE),
        ("program", "return E5", "return step.Streamify().apply(E4)", AFFINE),
        ("program", "step.Zip().apply((E0, E1))", "torch.stack([E0, E1])", PARSE),
    ],
    "attn_1": [
        (
            "fn_expmaxdiff",
            "(input[0] - top), torch.exp(state[0] - top)",
            "(state[0] - top), torch.exp(input[0] - top)",
            MATCH,
        ),
        ("fn_expmaxdiff.init", "-inf", "0", MATCH),
        ("fn_divsum", "input[2] * state[0]", "state[0]", MATCH),
        ("fn_divsum", ") / total]", ")]", MATCH),
        ("fn_getsecondthird", "[input[1], input[2]]", "[input[2], input[1]]", MATCH),
        ("fn_getsecond", "input[1]", "input[0]", MATCH),
        ("program", "step.Scan(", "step.Accum(", TYPE),
        ("program", "(E1, E3)", "(E3, E1)", TYPE),
        ("program", "step.Scan(fn=fn_expmaxdiff, b=1)", "step.Map(fn=fn_expmaxdiff)", TYPE),
        ("program", "return E7", "return step.Streamify().apply(E6)", AFFINE),
    ],
    "attn_2": [
        ("fn_expmaxdiff.init", "-inf", "0", MATCH),
        ("fn_wssingle", "state[0] * input[1] + input[0]", "state[0] + input[0]", MATCH),
        ("fn_wsdouble", "state[0] * input[2]", "state[0] * input[1]", MATCH),
        ("fn_wsdouble", "input[1] * input[0]", "input[0]", MATCH),
        ("fn_div", "input[1] / input[0]", "input[0] / input[1]", MATCH),
        ("fn_div", "input[1] / input[0]", "input[1]", MATCH),
        ("program", "(E6, E8)", "(E8, E6)", TYPE),
        ("program", "fn=fn_wsdouble, b=1", "fn=fn_wsdouble, b=2", TYPE),
        ("program", "b=1).apply(E4)", "b=1).apply(E5)", AFFINE),
        ("program", "return E10", "return E10.data", PARSE),
    ],
    "bmm_0": [
        (
            "fn_outer_product",
            "torch.outer(input[0], input[1])",
            "torch.outer(input[1], input[0]).reshape(N_value, D_value)",
            MATCH,
        ),
        ("fn_sum", *KEEP_LAST),
        ("fn_sum.init", *START_AT_1),
        ("program", "(E2, E3)", "(E3, E2)", TYPE),
        ("program", "E2 = step.Bufferize(a=1)", "E2 = step.Bufferize(a=2)", TYPE),
        ("program", "step.Accum(", "step.Scan(", TYPE),
        ("program", "return E6", "return E5", TYPE),
        ("program", "return E6", "return step.Streamify().apply(E5)", AFFINE),
    ],
    "bmm_1": [
        ("fn_mul", "input[0] * input[1]", "input[0] + input[1]", MATCH),
        ("fn_sum", *KEEP_LAST),
        ("program", "n=N", "n=K", TYPE),
        ("program", "n=N", "n=7", TYPE),
        ("program", "a=2", "a=1", TYPE),
        ("program", "E3 = step.Repeat(n=N).apply(E2)", "E3 = step.Promote(b=0).apply(E2)", TYPE),
        ("program", "(E0, E5)", "(E5, E0)", TYPE),
        ("program", "return E8", "return step.Streamify().apply(E7)", AFFINE),
    ],
    "bmm_2": [
        ("fn_mul", "input[0] * input[1]", "input[0] + input[1]", MATCH),
        ("fn_sum", *KEEP_LAST),
        ("fn_sum.init", *START_AT_1),
        ("program", "n=D", "n=N", TYPE),
        ("program", "E5 = step.Bufferize(a=2)", "E5 = step.Bufferize(a=1)", TYPE),
        ("program", "return E9", "return step.Accum(fn=fn_sum, b=1).apply(E8)", AFFINE),
        ("program", "(E4, E7)", "(E4, E4)", AFFINE),
        ("program", "step.Accum(", "step.Scan(", TYPE),
    ],
    "gemm_0": [
        ("fn_mul", "input[0] * input[1]", "input[0] * input[0]", MATCH),
        ("fn_add", *KEEP_LAST),
        ("fn_add.init", *START_AT_1),
        ("program", "Bufferize(a=2)", "Bufferize(a=1)", TYPE),
        ("program", "step.Promote(b=1)", "step.Promote(b=0)", TYPE),
        ("program", "step.Promote(b=1)", "step.Identity()", TYPE),
        ("program", "L=[2]", "L=[1]", TYPE),
        ("program", "return E7", "return E6", TYPE),
        ("program", "(E0, E1)", "(E0, E0)", AFFINE),
        ("program", "step.Map(fn=fn_mul).apply((E0, E1))", "E0 * E1", PARSE),
    ],
    "gemm_1": [
        ("fn_mul", "input[0] * input[1]", "input[0] + input[1]", MATCH),
        ("fn_add", *KEEP_LAST),
        ("fn_add.init", *START_AT_1),
        ("program", "step.Promote(b=1)", "step.Promote(b=0)", TYPE),
        ("program", "step.Accum(", "step.Scan(", TYPE),
        ("program", "fn=fn_add, b=1", "fn=fn_mul, b=1", TYPE),
        ("program", "(E0, E1)", "(E1, E1)", AFFINE),
    ],
    "gemm_2": [
        ("fn_mul", "input[0] * input[1]", "input[0]", MATCH),
        ("fn_add", "state[0] + input[0]", "state[0] - input[0]", MATCH),
        ("fn_add", *KEEP_LAST),
        ("program", "n=M", "n=N", TYPE),
        ("program", "n=M", "n=5", TYPE),
        ("program", "b=1", "b=2", TYPE),
        ("program", "return E6", "return step.Accum(fn=fn_add, b=1).apply(E5)", AFFINE),
        ("program", "E4 = step.Streamify().apply(E3)", "E4 = step.Streamify().apply(E0)", TYPE),
    ],
    "norm_0": [
        ("fn_mean", ".mean()", ".sum()", MATCH),
        ("fn_minus", "input[0] - input[1]", "input[1] - input[0]", MATCH),
        ("fn_div", "input[0] / input[1]", "input[1] / input[0]", MATCH),
        ("fn_addeps", "1e-5", "1e-6", MATCH),
        ("program", "(E2, E3)", "(E3, E2)", MATCH),
        ("program", "(E6, E10)", "(E10, E6)", MATCH),
        ("program", "step.Map(fn=fn_sqrt)", "step.Identity()", MATCH),  # by the variance, not its root
        ("program", "step.Map(fn=fn_addeps)", "step.Identity()", MATCH),  # no epsilon ...
        (
            "program",  # ... or after the root
            "E9 = step.Map(fn=fn_addeps).apply(E8)\nE10 = step.Map(fn=fn_sqrt).apply(E9)",
            "E9 = step.Map(fn=fn_sqrt).apply(E8)\nE10 = step.Map(fn=fn_addeps).apply(E9)",
            MATCH,
        ),
        ("program", "E3 = step.Map(fn=fn_mean)", "E3 = step.Accum(fn=fn_mean, b=1)", TYPE),
        ("program", "E4 = step.Map(fn=fn_minus).apply((E2, E3))", "E4 = step.Map(fn=fn_minus).apply(E2)", TYPE),
        ("program", "step.Map(fn=fn_mean).apply(E7)", "step.Map(fn=fn_mean).apply(E5)", AFFINE),
        ("program", "(E2, E3)", "(E1, E3)", AFFINE),
        ("program", "E1, E2 = step.Copy().apply(E0)", "E1, E2 = E0, E0", AFFINE),
    ],
    "norm_1": [
        ("fn_divbyD", "D_value", "N_value", MATCH),
        ("fn_divbyD", "D_value", "(D_value - 1)", MATCH),
        ("fn_add.init", *START_AT_1),
        ("fn_square", "input[0] * input[0]", "torch.abs(input[0])", MATCH),
        ("program", "(E2, E5)", "(E5, E2)", MATCH),
        ("program", "(E8, E14)", "(E14, E8)", MATCH),
        ("program", "E11 = step.Map(fn=fn_divbyD)", "E11 = step.Identity()", MATCH),
        ("program", "step.Map(fn=fn_addeps)", "step.Identity()", MATCH),
        (
            "program",
            "E12 = step.Map(fn=fn_addeps).apply(E11)\nE13 = step.Map(fn=fn_sqrt).apply(E12)",
            "E12 = step.Map(fn=fn_sqrt).apply(E11)\nE13 = step.Map(fn=fn_addeps).apply(E12)",
            MATCH,
        ),
        ("program", "E5 = step.Repeat(n=D)", "E5 = step.Repeat(n=N)", TYPE),
        ("program", "E5 = step.Repeat(n=D).apply(E4)", "E5 = step.Identity().apply(E4)", TYPE),
        ("program", "fn_square).apply(E7)", "fn_square).apply(E8)", AFFINE),
    ],
    "norm_2": [
        ("fn_divbyD", "D_value", "K_value", MATCH),
        ("fn_addeps", "1e-5", "1e-6", MATCH),
        ("fn_add.init", *START_AT_1),
        ("program", "(E2, E8)", "(E8, E2)", MATCH),
        ("program", "step.Map(fn=fn_addeps)", "step.Identity()", MATCH),
        (
            "program",  # passes fp32 tolerances on most draws: needs expected values in float64
            "E6 = step.Map(fn=fn_addeps).apply(E5)\nE7 = step.Map(fn=fn_sqrt).apply(E6)",
            "E6 = step.Map(fn=fn_sqrt).apply(E5)\nE7 = step.Map(fn=fn_addeps).apply(E6)",
            MATCH,
        ),
        ("program", "step.Map(fn=fn_divbyD)", "step.Identity()", MATCH),
        ("program", "step.Map(fn=fn_sqrt)", "step.Identity()", MATCH),
        ("program", "n=D", "n=16", TYPE),
        ("program", "(E2, E8)", "(E1, E8)", AFFINE),
    ],
    "rope_0": [
        *_rotation("fn_neoxrope", halves=True),
        ("program", "step.Scan(fn=fn_sum, b=1)", "step.Identity()", MATCH),  # increments taken for positions
        ("program", "(E2, E1)", "(E1, E2)", TYPE),
        ("program", "(E2, E1)", "(E0, E1)", AFFINE),
        ("program", "b=1", "b=2", TYPE),
    ],
    "rope_1": [
        *_rotation("fn_gptjrope", halves=False),
        ("fn_gptjrope", "dim=1", "dim=0", MATCH),  # the halves left apart
        ("fn_gptjrope", "torch.cos(input[0] * theta), torch.sin(", "torch.sin(input[0] * theta), torch.cos(", MATCH),
        ("program", "(E2, E1)", "(E1, E2)", TYPE),
        ("program", "return E3", "return step.Map(fn=fn_gptjrope).apply((E2, E1))", AFFINE),
    ],
    "rope_2": [
        *_rotation("fn_neoxrope", halves=True),
        ("program", "(E0, E2)", "(E2, E0)", TYPE),
        ("program", "step.RepeatRef().apply((E0, E2))", "step.Repeat(n=D).apply(E0)", TYPE),
        ("program", "step.RepeatRef().apply((E0, E2))", "step.RepeatRef().apply(E0, E2)", PARSE),
        ("program", "(E5, E3)", "(E5, E2)", AFFINE),
    ],
    "index_0": [
        ("fn_gate", "softmax(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        *_top(1, 0, 2),
        ("program", "return E3, E2", "return E2, E3", TYPE),
        ("program", "return E3, E2", "return E3", TYPE),
        ("program", "a=1", "a=2", TYPE),
        ("program", "return E3, E2", "return E3, step.Map(fn=fn_gate).apply(E1)", AFFINE),
    ],
    "index_1": [
        ("fn_gate", "softmax(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        ("fn_transpose_0", "input[0].transpose(0, 1)", "input[0].reshape(E_value, M_value)", MATCH),
        ("fn_transpose_1", "input[0].transpose(0, 1)", "input[0].reshape(M_value, E_value)", MATCH),
        *_top(3, 2, 4),
        ("program", "E5 = step.Map(fn=fn_transpose_0)", "E5 = step.Map(fn=fn_transpose_1)", TYPE),
        ("program", "E7 = step.Bufferize(a=1)", "E7 = step.Identity()", TYPE),
        ("program", "b=1", "b=0", TYPE),
        ("program", "return E12, E2", "return E11, E2", TYPE),
        ("program", "return E12, E2", "return E2, E12", TYPE),
        ("program", "return E12, E2", "return E12, step.Map(fn=fn_gate).apply(E1)", AFFINE),
    ],
    "index_2": [
        ("fn_gate", "sigmoid(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        *_top(3, 2, 4),
        ("program", "return E7, E2", "return E2, E7", MATCH),  # two outputs of one type
        ("program", "return E7, E2", "return E7, E7", MATCH),
        ("program", "return E7, E2", "return E6, E2", TYPE),
        ("program", "step.Promote(b=1)", "step.Identity()", TYPE),
        ("program", "return E7, E2", "return E7, E2[0]", PARSE),
        ("program", "return E7, E2", "return E7, step.Identity().apply(E2)", AFFINE),
    ],
    "index_3": [
        ("fn_score", "silu(", "sigmoid(", MATCH),
        ("fn_score", "silu(", "torch.nn.functional.gelu(", MATCH),
        ("fn_score", "sigmoid(hidden", "(hidden", MATCH),
        ("fn_filter", "> 0.5", "< 0.5", MATCH),
        ("fn_filter", "> 0.5", ">= 0.5", MATCH),
        ("fn_filter", "> 0.5", "> 0.9", MATCH),
        ("fn_filter", *EXCHANGED_MARKS),
        ("program", "step.Map(fn=fn_filter)", "step.Map(fn=fn_score)", TYPE),
        ("program", "a=1", "a=2", TYPE),
        ("program", "fn_filter).apply(E2)", "fn_filter).apply(E1)", TYPE),
        ("program", "return E3", "return step.Map(fn=fn_filter).apply(E2)", AFFINE),
    ],
    "expert_0": [
        *_update("E11 = step.Map(fn=fn_expert0)", "[E11, E12]", "[E12, E11]"),
        ("fn_affinity", "sigmoid(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        ("fn_expert1", "input[0]", "input[1] * input[0]", MATCH),
        ("program", "E12 = step.Map(fn=fn_expert1)", "E12 = step.Map(fn=fn_expert0)", MATCH),
        ("program", "(E4, E5)", "(E5, E4)", TYPE),
        ("program", "(E6, E7)", "(E6, E1)", AFFINE),
        ("program", "[E11, E12], E8", "[E11, E12], E7", AFFINE),
        ("program", "(E4, E5)", "(E3, E5)", AFFINE),
    ],
    "expert_1": [
        ("fn_weighted_sum", "state[0] + input[1] * input[0]", "input[1] * input[0]", MATCH),  # merge without sum
        ("fn_weighted_sum", "state[0] + input[1] * input[0]", "state[0] + input[0]", MATCH),
        ("fn_weighted_sum.init", *START_AT_1),
        ("fn_expert0", "input[1][0]", "input[1][1]", MATCH),
        ("fn_expert1", "gelu(", "torch.relu(", MATCH),
        ("fn_expert2", "W2_0", "W1_0", MATCH),
        ("program", "E9 = step.Map(fn=fn_expert0)", "E9 = step.Map(fn=fn_expert1)", MATCH),
        ("program", "[E9, E10, E11]", "[E10, E9, E11]", TYPE),
        ("program", "[E9, E10, E11]", "[E9, E10]", TYPE),
        ("program", "(E0, E2)", "(E2, E0)", TYPE),
        ("program", "(E3, E4)", "(E4, E3)", TYPE),
        ("program", "[E9, E10, E11], E5", "[E9, E10, E11], E4", AFFINE),
        ("program", "[E9, E10, E11], E5", "[E9, E10, E11], E1", AFFINE),
    ],
    "expert_2": [
        *_update("E9 = step.Map(fn=fn_expert0)", "[E9, E10]", "[E10, E9]"),
        ("fn_filter", "== 1", "== 0", MATCH),
        ("fn_filter", *EXCHANGED_MARKS),
        ("fn_filter", *NOT_BINARY),
        (
            "program",  # merged by another index than the partition's
            "E3 = step.Map(fn=fn_filter).apply(E1)\nE4, E5 = step.Copy().apply(E3)\nE6 = step.Zip().apply((E0, E2))",
            "E4 = step.Map(fn=fn_filter).apply(E1)\nE2, E3 = step.Copy().apply(E2)\n"
            "E5 = step.Map(fn=fn_filter).apply(E3)\nE6 = step.Zip().apply((E0, E2))",
            RUN,
        ),
        ("program", "(E6, E4)", "(E6, E5)", AFFINE),
        ("program", "E4, E5 = step.Copy().apply(E3)", "E4, E5 = E3, E3", AFFINE),
    ],
    "etoe_0": [*_top(1, 0, 2), *_mixture(1)],
    "etoe_1": [*_top(2, 1, 3), ("fn_sum", *KEEP_LAST), *_mixture(2)],
    "etoe_2": [
        *_update("E18 = step.Map(fn=fn_expert0)", "[E18, E19]", "[E19, E18]"),
        ("fn_gate", "sigmoid(input[0] @ input_data['Wg'])", "input[0] @ input_data['Wg']", MATCH),
        *_top(3, 2, 4),
        ("fn_filter", "== 1", "== 0", MATCH),
        ("fn_filter", *NOT_BINARY),
        ("program", "step.Zip().apply((E3, E6))", "step.Zip().apply((E3, E5))", AFFINE),
        (
            "program",  # routed by the score itself, which is never 1
            "E12 = step.Map(fn=fn_filter).apply(E11)",
            "E6, E11 = step.Copy().apply(E6)\nE12 = step.Map(fn=fn_filter).apply(E11)",
            MATCH,
        ),
        (
            "program",  # merged by another index than the partition's
            "E13, E14 = step.Copy().apply(E12)",
            "E6, E14 = step.Copy().apply(E6)\nE13, E14 = E12, step.Map(fn=fn_filter).apply(E14)",
            RUN,
        ),
        ("program", "E11 = step.Flatten(L=[1]).apply(E10)", "E11 = step.Identity().apply(E10)", TYPE),
        ("program", "E7 = step.Promote(b=1)", "E7 = step.Promote(b=0)", TYPE),
    ],
    "etoe_3": [
        *_update("E14 = step.Map(fn=fn_expert0)", "[E14, E15]", "[E15, E14]"),
        ("fn_score", "silu(", "gelu(", MATCH),
        ("fn_filter", "> 0.5", "< 0.5", MATCH),
        ("fn_filter", "> 0.5", ">= 0.5", MATCH),
        ("fn_filter", *NOT_BINARY),
        ("program", "fn_affinity).apply(E4)", "fn_score).apply(E4)", MATCH),  # the score taken for the affinity
        ("program", "fn_score).apply(E2)", "fn_affinity).apply(E2)", MATCH),
        (
            "program",  # merged by another index than the partition's
            "E8, E9 = step.Copy().apply(E7)\nE10 = step.Map(fn=fn_affinity).apply(E4)",
            "E10 = step.Map(fn=fn_affinity).apply(E4)\nE10, E9 = step.Copy().apply(E10)\n"
            "E8, E9 = E7, step.Map(fn=fn_filter).apply(E9)",
            RUN,
        ),
        ("program", "E4, E5 = step.Copy().apply(E3)", "E4, E5 = E3, E3", AFFINE),
        ("program", "(E11, E8)", "(E11, E9)", AFFINE),
    ],
}


def mutants() -> Iterator[Mutant]:
    for task, rows in TABLE.items():
        for row in rows:
            yield Mutant(task, *row)
