"""The simulator: the reference's examples, empty streams, and agreement with the arbiter on random programs."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from targets.step.arbiter import interpret
from targets.step.programs import SMALL, spec

from opsmith.targets.step.execution.bound import draw_bound
from opsmith.targets.step.execution.run import RunError, execute_program
from opsmith.targets.step.language.check import check_program

INDEX = [[1, 0], [0, 1], [1, 1]]
ROWS = [[1, 2, 3], [4, 5, 6]]

EXAMPLES = [
    ("fp32 [M, N]", "fp32 [M, N]", "return step.Map(fn=fn_sq).apply(E0)", [ROWS], [[1, 4, 9], [16, 25, 36]]),
    (
        "fp32 [M, N]; fp32 [M, N]",
        "fp32 [M, N]",
        "return step.Map(fn=fn_add).apply((E0, E1))",
        [ROWS, [[10, 20, 30], [40, 50, 60]]],
        [[11, 22, 33], [44, 55, 66]],
    ),
    ("fp32 [M, N]", "fp32 [N]", "return step.Accum(fn=fn_sum, b=1).apply(E0)", [ROWS], [6, 15]),
    ("fp32 [M, N]", "fp32 [N]", "return step.Accum(fn=fn_dec, b=1).apply(E0)", [ROWS], [123, 456]),
    ("fp32 [N, K, 1]", "fp32 [1]", "return step.Accum(fn=fn_dec, b=2).apply(E0)", [[[[1, 2], [3, 4]]]], [1234]),
    ("fp32 [M]", "fp32 [1]", "return step.Accum(fn=fn_sum, b=1).apply(step.Promote(b=1).apply(E0))", [[1, 2, 3]], [6]),
    ("fp32 [M, N]", "fp32 [M, N]", "return step.Scan(fn=fn_sum, b=1).apply(E0)", [ROWS], [[1, 3, 6], [4, 9, 15]]),
    (
        "fp32 [M, N, K]",
        "fp32 [M, N, K]",
        "return step.Scan(fn=fn_sum, b=2).apply(E0)",
        [[ROWS, [[7, 8, 9], [10, 11, 12]]]],
        [[[1, 3, 6], [10, 15, 21]], [[7, 15, 24], [34, 45, 57]]],
    ),
    (
        "fp32 [M, N]",
        "fp32 [M, N]",
        "return step.Scan(fn=fn_down, b=1).apply(E0)",
        [[[1, 1, 1], [1, 1, 1]]],
        [[0, 1, 2], [0, 1, 2]],
    ),
    ("fp32 [M, N]", "fp32 [M, N, 1]", "return step.Promote(b=2).apply(E0)", [ROWS], [ROWS]),
    ("fp32 [M, N]", "fp32 [M*N]", "return step.Flatten(L=[1]).apply(E0)", [ROWS], [1, 2, 3, 4, 5, 6]),
    (
        "fp32 [D, N]",
        "fp32 [2, D/2, N]",
        "return step.Reshape(S=2, L=[0]).apply(E0)",
        [[[1, 2, 3, 4], [5, 6, 7, 8]]],
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    ),
    ("fp32 [N]", "fp32 [M, N]", "return step.Repeat(n=M).apply(E0)", [[7, 8]], [[7, 7, 7], [8, 8, 8]]),
    (
        "fp32 [N]; fp32 [M, N]",
        "fp32 [M, N]",
        "return step.RepeatRef().apply((E0, E1))",
        [[7, 8], ROWS],
        [[7, 7, 7], [8, 8, 8]],
    ),
    (
        "fp32 [M, N]",
        "fp32 [M, D, N]",
        "A = step.Repeat(n=D).apply(step.Bufferize(a=1).apply(E0))\nreturn step.Streamify().apply(A)",
        [ROWS],
        [[row] * 4 for row in ROWS],
    ),
    ("fp32 [M, N]", "fp32 [M, N]", "return step.Identity().apply(E0)", [ROWS], ROWS),
    (
        "fp32 [M]; Multihot(fp32, E) [M]",
        "fp32 [M]",
        "I, J = step.Copy().apply(E1)\nA, B = step.Partition(N=2).apply((E0, I))\nA, B = step.Map(fn=fn_inc).apply(A), step.Map(fn=fn_inc2).apply(B)\nreturn step.Merge(fn=fn_sum).apply(([A, B], J))",
        [[10, 20, 30], INDEX],
        [11, 22, 63],
    ),
    (
        "fp32 [N, M]; Multihot(fp32, E) [M]",
        "fp32 [N, M]",
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=2).apply((E0, I))\nreturn step.Merge(fn=fn_sum).apply((L, J))",
        [[[1, 2], [3, 4], [5, 6]], INDEX],
        [[1, 2], [3, 4], [10, 12]],
    ),
    (
        "fp32 [M]; Multihot(fp32, E) [M]",
        "fp32 [M]",
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=2).apply((E0, I))\nreturn step.Merge(fn=fn_down).apply((L, J))",
        [[10, 20, 30], [[1, 0], [0, 0], [1, 0]]],
        [9, -1, 29],
    ),
    (
        "fp32 [M, N]; Multihot(fp32, E) [M, N]",
        "fp32 [M, N]",
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=2).apply((E0, I))\nreturn step.Merge(fn=fn_sum).apply((L, J))",
        [ROWS, [[[1, 0], [0, 1], [1, 0]], [[0, 1], [0, 1], [1, 0]]]],
        ROWS,
    ),
    (
        "fp32 [N, M]; Multihot(fp32, E) [M]",
        "fp32 [M]",
        "I, J = step.Copy().apply(E1)\nL = step.Partition(N=2).apply((E0, I))\nL = [step.Accum(fn=fn_sum, b=1).apply(s) for s in L]\nreturn step.Merge(fn=fn_sum).apply((L, J))",
        [[[1, 2], [3, 4], [5, 6]], [[0, 1], [0, 1], [0, 1]]],
        [3, 7, 11],
    ),
]


def bound(task, tensors):
    """The task's bindings with these inputs in place of drawn ones."""
    drawn = draw_bound(task, {}, seed=0)
    data = {
        entry.name: torch.tensor(values, dtype=torch.float32)
        for entry, values in zip(task.inputs, tensors, strict=True)
    }
    return replace(drawn, input_data=data)


@pytest.mark.parametrize(("inputs", "outputs", "program", "tensors", "wanted"), EXAMPLES)
def test_the_reference_examples(inputs, outputs, program, tensors, wanted):
    task = spec(inputs, outputs)
    report = check_program(task, program)
    assert not report.errors, [str(error) for error in report.errors]
    bindings = bound(task, tensors)
    ((result,),) = execute_program(report.graph, bindings, 100)
    assert torch.equal(result, torch.tensor(wanted, dtype=torch.float32))
    ((by_hand,),) = interpret(report.graph, bindings)
    assert torch.equal(by_hand, result)


ROUTED = spec("fp32 [M]; Multihot(fp32, E) [M]", "fp32 [M]")
ROUTE = (
    "I, J = step.Copy().apply(E1)\nL = step.Partition(N=2).apply((E0, I))\nreturn step.Merge(fn=fn_sum).apply((L, J))"
)


def test_an_index_entry_other_than_0_or_1_is_a_run_error():
    graph = check_program(ROUTED, ROUTE).graph
    with pytest.raises(RunError, match=r"given 0.5 at index position \(1\), expert 1; expected 0 or 1"):
        execute_program(graph, bound(ROUTED, [[1, 2, 3], [[1, 0], [0, 0.5], [0, 1]]]), 100)


TWO_INDEXES = spec("fp32 [M]; Multihot(fp32, E) [M]; Multihot(fp32, E) [M, 1]", "fp32 [M]")


def test_an_index_computed_twice_must_be_equal():
    program = "I = step.Flatten(L=[1]).apply(E2)\nL = step.Partition(N=2).apply((E0, I))\nreturn step.Merge(fn=fn_sum).apply((L, E1))"
    graph = check_program(TWO_INDEXES, program).graph
    same = bound(TWO_INDEXES, [[1, 2, 3], INDEX, [INDEX]])
    assert execute_program(graph, same, 100)[0][0].tolist() == [1, 2, 6]
    with pytest.raises(RunError, match=r"position \(0\)"):
        execute_program(graph, bound(TWO_INDEXES, [[1, 2, 3], [[0, 1], [0, 1], [1, 1]], [INDEX]]), 100)


TOO_MUCH = {
    "x = E0\nfor i in range(9):\n    x = step.Repeat(n=D*D*D).apply(x)\nreturn E0": "a stream of 50331648 elements",
    "x = step.Repeat(n=1000000).apply(E0)\nfor i in range(9):\n    x = step.Map(fn=fn_sq).apply(x)\nreturn E0": (
        "6000000 elements streamed up to here; expected at most 4000000"
    ),
    "x = step.Accum(fn=fn_dec, b=1).apply(step.Repeat(n=40000).apply(E0))\nreturn E0": "40000 entries folded",
    "x = step.Repeat(n=K/2).apply(E0)\nreturn E0": "K/2 is not an integer: K = 3; expected a whole size",
}


def test_a_program_that_streams_too_much_is_refused_before_it_runs():
    task = spec("fp32 [M]", "fp32 [M]")
    for program, words in TOO_MUCH.items():
        with pytest.raises(RunError, match=words):
            execute_program(check_program(task, program).graph, draw_bound(task, {"K": 3}, 0), 6)


def test_a_run_writes_into_no_input():
    task = spec("fp32 [M, N]", "fp32 [M, N]")
    bindings = draw_bound(task, {}, 1)
    before = {name: tensor.clone() for name, tensor in bindings.input_data.items()}
    execute_program(check_program(task, "return step.Scan(fn=fn_sum, b=1).apply(E0)").graph, bindings, 100)
    assert all(torch.equal(before[name], tensor) for name, tensor in bindings.input_data.items())


def test_equal_subexpressions_are_computed_once():
    program = (
        "A, B = step.Copy().apply(E0)\nX = step.Map(fn=fn_sq).apply(A)\nY = step.Map(fn=fn_sq).apply(B)\n"
        "return step.Map(fn=fn_add).apply((X, Y))"
    )
    graph = check_program(spec("fp32 [M, N]"), program).graph
    assert [node.op for node in graph.distinct] == ["Map", "Map"]


UNREAD = (
    "A, B = step.Copy().apply(E0)\nI = step.Flatten(L=[1]).apply(E2)\n"
    "L = step.Partition(N=2).apply((step.Map(fn=fn_sq).apply(A), I))\n"
    "T = step.Map(fn=fn_neg).apply(step.Merge(fn=fn_sum).apply((L, {index})))\nreturn B"
)


def test_of_what_nobody_reads_only_indexes_are_needed():
    task = spec("fp32 [M]; fp32 [M]; Multihot(fp32, E) [M, 1]", "fp32 [M]")
    program = UNREAD.format(index="J").replace("L =", "I, J = step.Copy().apply(I)\nL =")
    needed = check_program(task, program).graph.needed
    assert [(node.op, len(node.operands)) for node in needed] == [("Flatten", 1), ("Partition", 1)]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ([[1, 0], [0.5, 1], [1, 1]], "Partition: given 0.5 at index position"),
        ([[0, 1], [0, 1], [1, 1]], "Merge: given an index that differs"),
    ],
)
def test_an_index_is_compared_where_nobody_reads_what_it_routes(index, words):
    graph = check_program(TWO_INDEXES, UNREAD.format(index="E1")).graph
    assert execute_program(graph, bound(TWO_INDEXES, [[1, 2, 3], INDEX, [INDEX]]), 10)[0][0].tolist() == [1, 2, 3]
    with pytest.raises(RunError, match=words):
        execute_program(graph, bound(TWO_INDEXES, [[1, 2, 3], INDEX, [index]]), 10)


TASK = spec(
    "fp32 [M, N]; Buffer(fp32, [D]) [N]; Multihot(fp32, E) [M, N]; fp32 [D, N]",
    fns=("fn_sq", "fn_neg", "fn_add", "fn_pair", "fn_sum", "fn_dec"),
    sizes=SMALL | {"D": 4},
)


@st.composite
def programs(draw_from):
    """A random well-typed program over TASK, grown one application at a time; Copies keep it affine."""
    lines, live = [], ["E0", "E1", "E2", "E3"]
    for step in range(draw_from(st.integers(1, 8))):
        name = draw_from(st.sampled_from(live))
        other = draw_from(st.sampled_from(live))
        line = draw_from(st.sampled_from(_FORMS)).format(
            x=f"X{step}", y=f"Y{step}", a=f"L{step}", b=f"R{step}", r=f"T{step}"
        )
        copies = [f"L{step}, X{step} = step.Copy().apply({name})"]
        copies += [f"R{step}, Y{step} = step.Copy().apply({other if other != name else f'L{step}'})"]
        left = f"L{step}" if other != name else f"R{step}"
        trial = [*lines, *copies, line]
        if check_program(TASK, "\n".join([*trial, "return E0"])).unrolled is None and not _only_out(trial):
            continue
        lines = trial
        live = (
            [n for n in live if n not in (name, other)] + [left, f"T{step}"] + ([f"R{step}"] if other != name else [])
        )
    return "\n".join([*lines, f"return {live[-1]}"])


_FORMS = [
    "{r} = step.Map(fn=fn_sq).apply({x})",
    "{r} = step.Map(fn=fn_pair).apply({x})",
    "{r} = step.Map(fn=fn_add).apply(({x}, {y}))",
    "{r} = step.Map(fn=fn_add).apply({x})",
    "{r} = step.Zip().apply(({x}, {y}))",
    "{r} = step.Accum(fn=fn_dec, b=1).apply({x})",
    "{r} = step.Accum(fn=fn_sum, b=2).apply({x})",
    "{r} = step.Scan(fn=fn_dec, b=1).apply({x})",
    "{r} = step.Promote(b=0).apply({x})",
    "{r} = step.Promote(b=1).apply({x})",
    "{r} = step.Flatten(L=[1]).apply({x})",
    "{r} = step.Flatten(L=[1, 2]).apply({x})",
    "{r} = step.Reshape(S=2, L=[0]).apply({x})",
    "{r} = step.Repeat(n=K).apply({x})",
    "{r} = step.RepeatRef().apply(({x}, {y}))",
    "{r} = step.Bufferize(a=1).apply({x})",
    "{r} = step.Streamify().apply({x})",
    "{r} = step.Identity().apply({x})",
    "{a}I, {a}J = step.Copy().apply({y})\n{a}P = step.Partition(N=2).apply(({x}, {a}I))\n{r} = step.Merge(fn=fn_sum).apply(({a}P, {a}J))",
]


def _only_out(lines):
    errors = check_program(TASK, "\n".join([*lines, "return E0"])).errors
    return all(error.kind == "OUT" for error in errors)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), st.integers(0, 3))
def test_the_simulator_agrees_with_the_arbiter_on_random_programs(program, seed):
    report = check_program(TASK, program)
    kinds = {error.kind for error in report.errors}
    assert kinds <= {"OUT"}, [str(error) for error in report.errors]
    returned = next(stream for stream in reversed(report.streams) if stream.name == program.rsplit(" ", 1)[1])
    task = replace(TASK, outputs=(replace(TASK.outputs[0], dtype=returned.type.dtype, dims=returned.type.dims),))
    graph = check_program(task, program).graph
    bindings = draw_bound(task, {}, seed)
    for fast, slow in zip(execute_program(graph, bindings, 10**4)[0], interpret(graph, bindings)[0], strict=True):
        assert torch.allclose(fast, slow, rtol=1e-5, atol=1e-5)
