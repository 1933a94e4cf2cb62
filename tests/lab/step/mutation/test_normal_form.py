"""The normal form: its laws hold in the simulator, its proofs about functions are right, and it keeps apart what differs."""

import random
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from targets.step.programs import spec

from opsmith.targets.step.execution.bound import draw_bound
from opsmith.targets.step.execution.run import execute_program
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import FnSpec, OutputSpec
from opsmith.targets.step.language.types import parse_type
from opsmith_lab.step.mutation.fn_laws import find_exchangeable, find_first_step, find_projection
from opsmith_lab.step.mutation.normal_form import Terms, normal_form

PAIR = "[fp32, fp32]"


def fn(name, given, made, body, init=None):
    return FnSpec(name, name, body, parse_type(given), parse_type(made), init)


FNS = (
    fn("fn_neg", "fp32", "fp32", "return [-input[0]]"),
    fn("fn_minus", "fp32", "fp32", "return [-input[0]]"),
    fn("fn_add", PAIR, "fp32", "return [input[0] + input[1]]"),
    fn("fn_sub", PAIR, "fp32", "return [input[0] - input[1]]"),
    fn("fn_pair", "fp32", PAIR, "return [input[0], 2 * input[0]]"),
    fn("fn_second", PAIR, "fp32", "return [input[1]]"),
    fn("fn_turn", PAIR, PAIR, "return [input[1], input[0]]"),
    fn("fn_sum", "fp32", "fp32", "return [state[0] + input[0]]", (0.0,)),
    fn("fn_from1", "fp32", "fp32", "return [state[0] + input[0]]", (1.0,)),
    fn("fn_max", "fp32", "fp32", "return [torch.maximum(state[0], input[0])]", (float("-inf"),)),
    fn("fn_dec", "fp32", "fp32", "return [state[0] * 10 + input[0]]", (0.0,)),
    fn("fn_dot", PAIR, "fp32", "return [state[0] + input[0] * input[1]]", (0.0,)),
)
SIZES = {"M": 3, "N": 2, "K": 5, "D": 4, "E": 2}
TASK = replace(
    spec("fp32 [M, N]; fp32 [M, N]; Buffer(fp32, [D]) [N]; Multihot(fp32, E) [M, N]", "fp32 [M, N]", (), SIZES),
    fns=FNS,
)
FORMS = [
    *(f"{{r}} = step.Map(fn={name}).apply({{x}})" for name in ("fn_neg", "fn_minus", "fn_pair", "fn_second", "fn_turn")),
    *(f"{{r}} = step.Map(fn={name}).apply(({{x}}, {{y}}))" for name in ("fn_add", "fn_second")),
    *(f"{{r}} = step.{op}(fn={name}, b=1).apply({{x}})" for op in ("Accum", "Scan") for name in ("fn_sum", "fn_max")),
    "{r} = step.Accum(fn=fn_from1, b=1).apply({x})",
    "{r} = step.Accum(fn=fn_dec, b=1).apply({x})\n{r}a = step.Accum(fn=fn_dec, b=2).apply({x})",
    "{r} = step.Scan(fn=fn_dec, b=1).apply({x})\n{r}a = step.Scan(fn=fn_dec, b=2).apply({x})",
    "{r} = step.Map(fn=fn_sub).apply(({x}, {y}))\n{r}a = step.Map(fn=fn_sub).apply(({y}, {x}))",
    "{r} = step.Accum(fn=fn_dot, b=1).apply({x})",
    "{r} = step.Zip().apply(({x}, {y}))",
    *(f"{{r}} = step.Promote(b={b}).apply({{x}})" for b in (0, 1, 2)),
    *(f"{{r}} = step.Flatten(L={L}).apply({{x}})" for L in ("[1]", "[2]", "[1, 2]")),
    *(f"{{r}} = step.Reshape(S={S}, L=[0]).apply({{x}})" for S in ("1", "2", "M")),
    *(f"{{r}} = step.Repeat(n={n}).apply({{x}})" for n in ("1", "2", "M")),
    "{r} = step.Repeat(n=2).apply({x})\n{r}a = step.Streamify().apply(step.Repeat(n=2).apply(step.Bufferize(a=1).apply({x})))",
    "{r} = step.RepeatRef().apply(({x}, {y}))",
    *(f"{{r}} = step.Bufferize(a={a}).apply({{x}})" for a in (1, 2)),
    "{r} = step.Streamify().apply({x})",
    "{r} = step.Identity().apply({x})",
    "{r}, {r}a = step.Partition(N=2).apply(({x}, E3))\n{r}b = step.Merge(fn=fn_sum).apply(([{r}, {r}a], E3))",
    "{r}a, {r} = step.Partition(N=2).apply(({x}, E3))\n{r}b = step.Merge(fn=fn_from1).apply(([{r}a, {r}], E3))",
]  # fmt: skip


def grown(seed, length=60):
    """A random program that returns every stream it makes; the affine rule is left out of account."""
    rng, lines, names = random.Random(seed), [], ["E0", "E1", "E2", "E3"]
    for step in range(length):
        line = rng.choice(FORMS).format(x=rng.choice(names), y=rng.choice(names), r=f"T{step}")
        if check_program(TASK, "\n".join([*lines, line, "return E0"])).unrolled is not None:
            lines.append(line)
            names += [name for name in (f"T{step}", f"T{step}a", f"T{step}b") if name in line]
    streams = check_program(TASK, "\n".join([*lines, "return E0"])).streams
    named = [stream for stream in streams if stream.name in names]
    outputs = tuple(OutputSpec(f"S{i}", s.type.dtype, s.type.dims, ("None",)) for i, s in enumerate(named))
    task = replace(TASK, outputs=outputs)
    return check_program(task, "\n".join([*lines, f"return {', '.join(s.name for s in named)}"])).unrolled


def test_fields_of_equal_terms_have_equal_data():
    proven = 0
    for seed in range(40):
        graph = grown(seed)
        data = execute_program(graph, draw_bound(TASK, {}, seed), 10**5)
        terms = [term for fields in normal_form(Terms(), graph) for term in fields]
        values = [(graph.values[s], i) for s, made in zip(graph.outputs, data, strict=True) for i in range(len(made))]
        flat = [tensor.reshape(-1) for made in data for tensor in made]
        for left, right in combinations(range(len(flat)), 2):
            if terms[left] == terms[right]:
                assert torch.equal(flat[left], flat[right]), (seed, values[left], values[right])
                proven += values[left] != values[right]
    assert proven > 1000  # pairs that are equal by a law, not because they are written alike


def meaning(terms, program, outputs="fp32 [M, N]"):
    task = replace(TASK, outputs=spec("fp32 [M]", outputs).outputs)
    report = check_program(task, program)
    assert report.unrolled is not None, [str(error) for error in report.errors]
    return normal_form(terms, report.unrolled)


ROUTED = "P, Q = step.Partition(N=2).apply((E0, E3))\nP, Q = {}\nreturn step.Merge(fn={}).apply(([P, Q], E3))"


@pytest.mark.parametrize(
    ("left", "right", "outputs"),
    [
        ("return E0", "return step.Identity().apply(E0)", "fp32 [M, N]"),
        ("return step.Streamify().apply(step.Bufferize(a=1).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Flatten(L=[1]).apply(step.Promote(b=0).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Repeat(n=1).apply(E0)", "return step.Promote(b=0).apply(E0)", "fp32 [1, M, N]"),
        ("return step.Repeat(n=M).apply(step.Bufferize(a=1).apply(E1))", "return step.RepeatRef().apply((step.Bufferize(a=1).apply(E1), E0))", "Buffer(fp32, [M]) [M, N]"),
        ("return step.Flatten(L=[1]).apply(step.Repeat(n=2).apply(step.Repeat(n=D).apply(E0)))", "return step.Repeat(n=2 * D).apply(E0)", "fp32 [2*D, M, N]"),
        ("return step.Map(fn=fn_neg).apply(step.Flatten(L=[1]).apply(E0))", "return step.Flatten(L=[1]).apply(step.Map(fn=fn_minus).apply(E0))", "fp32 [M*N]"),
        ("return step.Map(fn=fn_add).apply((E0, E1))", "return step.Map(fn=fn_add).apply(step.Zip().apply((E1, E0)))", "fp32 [M, N]"),
        ("return step.Map(fn=fn_second).apply((E0, E1))", "return E1", "fp32 [M, N]"),
        ("return step.Map(fn=fn_sub).apply(step.Map(fn=fn_turn).apply((E0, E1)))", "return step.Map(fn=fn_sub).apply((E1, E0))", "fp32 [M, N]"),
        ("return step.Accum(fn=fn_dec, b=2).apply(step.Promote(b=2).apply(E0))", "return step.Accum(fn=fn_dec, b=1).apply(step.Promote(b=1).apply(step.Flatten(L=[1]).apply(E0)))", "fp32 [1]"),
        ("return step.Accum(fn=fn_sum, b=1).apply(step.Promote(b=0).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Accum(fn=fn_max, b=1).apply(step.Promote(b=0).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Flatten(L=[1]).apply(step.Scan(fn=fn_dec, b=1).apply(step.Promote(b=0).apply(E0)))", "return step.Accum(fn=fn_dec, b=1).apply(step.Promote(b=0).apply(E0))", "fp32 [M, N]"),
        (ROUTED.format("P, Q", "fn_sum"), "X = step.Partition(N=2).apply((E1, E3))\n" + ROUTED.format("P, Q", "fn_sum"), "fp32 [M, N]"),
    ],
)  # fmt: skip
def test_each_law_proves_its_example(left, right, outputs):
    terms = Terms()
    assert meaning(terms, left, outputs) == meaning(terms, right, outputs)


@pytest.mark.parametrize(
    ("left", "right", "outputs"),
    [
        ("return E0", "return E1", "fp32 [M, N]"),
        ("return step.Map(fn=fn_sub).apply((E0, E1))", "return step.Map(fn=fn_sub).apply((E1, E0))", "fp32 [M, N]"),
        ("return step.Accum(fn=fn_sum, b=1).apply(E0)", "return step.Accum(fn=fn_from1, b=1).apply(E0)", "fp32 [N]"),
        ("return step.Accum(fn=fn_from1, b=1).apply(step.Promote(b=0).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Accum(fn=fn_dec, b=1).apply(step.Promote(b=0).apply(E0))", "return E0", "fp32 [M, N]"),
        ("return step.Scan(fn=fn_sum, b=2).apply(step.Promote(b=2).apply(E0))", "return step.Promote(b=2).apply(step.Scan(fn=fn_sum, b=1).apply(E0))", "fp32 [M, N, 1]"),
        ("return step.Repeat(n=2).apply(step.Bufferize(a=1).apply(E0))", "return step.Bufferize(a=1).apply(step.Streamify().apply(step.Repeat(n=2).apply(step.Bufferize(a=1).apply(E1))))", "Buffer(fp32, [M]) [2, N]"),
        ("return step.Streamify().apply(step.Repeat(n=M).apply(step.Bufferize(a=1).apply(E0)))", "return step.Repeat(n=M).apply(E0)", "fp32 [M, M, N]"),
        (ROUTED.format("P, Q", "fn_sum"), ROUTED.format("step.Map(fn=fn_neg).apply(P), Q", "fn_sum"), "fp32 [M, N]"),
        (ROUTED.format("P, Q", "fn_sum"), ROUTED.format("P, Q", "fn_from1"), "fp32 [M, N]"),
        (ROUTED.format("P, Q", "fn_sum"), "return E0", "fp32 [M, N]"),
    ],
)  # fmt: skip
def test_what_differs_is_kept_apart(left, right, outputs):
    terms = Terms()
    assert meaning(terms, left, outputs) != meaning(terms, right, outputs)


@pytest.mark.parametrize(
    ("body", "kept", "traded"),
    [
        ("return [input[1]]", (1,), ()),
        ("return [input[1], input[0]]", (1, 0), ()),
        ("return [input[0] + input[1]]", None, ((0, 1),)),
        ("return [(input[0] * 2) * input[1]]", None, ()),
        ("return [input[0] - input[1]]", None, ()),
        ("both = input[1] * input[0]\nreturn [both + 1]", None, ((0, 1),)),
        ("input = input[::-1]\nreturn [input[0] + input[1]]", None, ()),
        ("return [torch.stack(input)[0]]", None, ()),
        ("return [torch.stack([input[0]] + [input[1]]).sum()]", None, ()),
        ("return [input[-1]]", None, ()),
    ],
)
def test_a_text_proves_what_it_selects_and_what_may_trade_places(body, kept, traded):
    made = PAIR if kept == (1, 0) else "fp32"
    found = fn("fn_x", PAIR, made, body)
    assert find_projection(found) == kept
    assert find_exchangeable(found) == traded


@pytest.mark.parametrize(
    ("given", "body", "init", "kept"),
    [
        ("fp32", "return [state[0] + input[0]]", 0.0, (0,)),
        ("fp32", "return [input[0] * state[0]]", 1.0, (0,)),
        ("fp32", "return [torch.minimum(input[0], state[0])]", float("inf"), (0,)),
        ("fp32", "return [state[0] + input[0]]", 1.0, None),
        ("fp32", "return [state[0] - input[0]]", 0.0, None),
        ("fp32", "return [state[0] * 10 + input[0]]", 0.0, None),
        ("fp64", "return [state[0] + input[0]]", 0.0, None),
    ],
)
def test_a_first_step_from_init_selects_its_input_only_at_the_unit(given, body, init, kept):
    assert find_first_step(fn("fn_x", given, "fp32", body, (init,))) == kept
