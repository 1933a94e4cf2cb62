"""What a program costs is counted before it runs: views cost nothing, and what is large is made piece by piece."""

from dataclasses import replace

import pytest
import torch
from targets.step.programs import spec

from opsmith.targets.step.execution import folds
from opsmith.targets.step.execution.bound import draw_bound
from opsmith.targets.step.execution.bounds import count_streamed
from opsmith.targets.step.execution.flow import Flow
from opsmith.targets.step.execution.held import list_peaks
from opsmith.targets.step.execution.run import RunError, execute_program
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.language.check import check_program

TASK = spec("fp32 [M, N]; fp32 [M, N]", "fp32 [N]")  # 3 * 2 numbers in each

HELD = {  # program -> the most numbers it holds at once, beside its inputs
    "return step.Accum(fn=fn_sum, b=1).apply(E0)": 2,
    "return step.Accum(fn=fn_sum, b=1).apply(step.Map(fn=fn_sq).apply(E0))": 2,  # in parts
    "return step.Accum(fn=fn_sum, b=1).apply(step.Map(fn=fn_add).apply((E0, E1)))": 2,
    "X = step.Map(fn=fn_sq).apply(E0)\nreturn step.Accum(fn=fn_sum, b=1).apply(step.Map(fn=fn_sq).apply(X))": 6 + 2,
    "X = step.Map(fn=fn_sq).apply(step.Map(fn=fn_sq).apply(E0))\nY = step.Zip().apply((X, E1))\nreturn step.Accum(fn=fn_sum, b=1).apply(step.Map(fn=fn_add).apply(Y))": 12,
    "X = step.Repeat(n=1000).apply(E0)\nreturn step.Accum(fn=fn_sum, b=2).apply(X)": 2 + 6000,  # two axes become one
    "X = step.Repeat(n=1000).apply(E0)\nX = step.Accum(fn=fn_sum, b=1).apply(X)\nreturn step.Accum(fn=fn_sum, b=1).apply(X)": 6
    + 2,
    "X = step.Map(fn=fn_sq).apply(step.Repeat(n=10).apply(E0))\nreturn step.Accum(fn=fn_sum, b=2).apply(X)": 2,
    "X = step.Scan(fn=fn_sum, b=1).apply(E0)\nreturn step.Accum(fn=fn_sum, b=1).apply(X)": 12,  # states, then one tensor
    "X = step.Flatten(L=[1]).apply(E0)\nreturn step.Accum(fn=fn_sum, b=1).apply(step.Reshape(S=M, L=[0]).apply(X))": 2,
    "X = step.Flatten(L=[1]).apply(step.Repeat(n=M).apply(E0))\nX = step.Reshape(S=M, L=[0]).apply(X)\nX = step.Accum(fn=fn_sum, b=1).apply(X)\nreturn step.Accum(fn=fn_sum, b=1).apply(X)": 18
    + 6,
}


def graph_of(program):
    report = check_program(TASK, program)
    assert not report.errors, [str(error) for error in report.errors]
    return report.graph


@pytest.mark.parametrize("program", HELD)
def test_what_is_held_at_once(program):
    stack = Stack([draw_bound(TASK, {}, 0)])
    held = list(list_peaks(graph_of(program), stack.count_elements))
    assert [node for node, _ in held] == list(graph_of(program).distinct)
    assert max(numbers for _, numbers in held) == HELD[program]


def test_memory_is_let_go_in_the_order_of_its_last_use():
    lines = ["X0 = step.Map(fn=fn_sq).apply(E0)"]
    lines += [f"X{at + 1} = step.Map(fn=fn_sq).apply(X{at})" for at in range(300)]
    graph = graph_of("\n".join([*lines, "return step.Accum(fn=fn_sum, b=1).apply(X300)"]))
    assert {numbers for _, numbers in list_peaks(graph, Stack([draw_bound(TASK, {}, 0)]).count_elements)} <= {
        2,
        6,
        8,
        12,
    }


def test_more_may_be_streamed_where_the_task_has_more_points():
    stack = Stack([draw_bound(TASK, {}, 0)])
    graph = graph_of(
        "X = step.Map(fn=fn_sq).apply(step.Repeat(n=500000).apply(E0))\nreturn step.Accum(fn=fn_sum, b=2).apply(X)"
    )
    with pytest.raises(RunError, match="6000000 elements streamed up to here; expected at most 4000000"):
        count_streamed(graph, stack, 14)
    assert count_streamed(graph, stack, 14, points=600_000) == 9_000_002
    huge = graph_of(
        "X = step.Map(fn=fn_sq).apply(step.Repeat(n=50000000).apply(E0))\nreturn step.Accum(fn=fn_sum, b=1).apply(E1)"
    )
    with pytest.raises(RunError, match="a stream of 300000000 elements; expected at most 134217728"):
        count_streamed(huge, stack, 14, points=10**12)


def untyped(program):
    """The graph of a program that may return what it likes."""
    kind = check_program(TASK, program).streams[-1].type
    made = replace(TASK, outputs=(replace(TASK.outputs[0], dtype=kind.dtype, dims=kind.dims),))
    return check_program(made, program).graph


PROGRAMS = [
    "return step.Map(fn=fn_add).apply((E0, E1))",
    "return step.Accum(fn=fn_dec, b=1).apply(step.Map(fn=fn_add).apply((E0, E1)))",
    "return step.Accum(fn=fn_sum, b=1).apply(step.Map(fn=fn_sq).apply(step.Repeat(n=K).apply(E0)))",
    "return step.Accum(fn=fn_dec, b=2).apply(step.Map(fn=fn_sq).apply(step.Repeat(n=K).apply(E0)))",
    "return step.Accum(fn=fn_sum, b=3).apply(step.Promote(b=3).apply(step.Map(fn=fn_sq).apply(step.Repeat(n=K).apply(E0))))",
    "return step.Map(fn=fn_pair).apply(step.Repeat(n=K).apply(E0))",
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 16])
def test_pieces_give_what_the_whole_gives(program, most, monkeypatch):
    graph, bindings = untyped(program), draw_bound(TASK, {}, 1)
    whole = execute_program(graph, bindings, 10**4)
    monkeypatch.setattr(folds, "PART", most)
    monkeypatch.setattr(folds, "PIECE", most)
    for one, other in zip(execute_program(graph, bindings, 10**4)[0], whole[0], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("most", [1, 2, 5, 6, 12, 100])
def test_every_entry_is_cut_once(most):
    flow = Flow([torch.arange(48).reshape(2, 4, 3, 2)], 4)
    seen = torch.zeros(2, 4, 3, 2)
    for part, index in flow.cut_axes(3, most):
        assert part.axes[0] == 2
        assert part.axes[1] * part.axes[2] <= most
        assert torch.equal(part.tensors[0], flow.tensors[0][index])
        seen[index] += 1
    assert bool((seen == 1).all())
