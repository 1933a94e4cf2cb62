"""Programs that run together, on several draws at once, give what each gives alone on each draw."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from targets.step.arbiter import interpret
from targets.step.authors import function, output, stream
from targets.step.programs import SMALL, spec
from targets.step.test_run import TASK, programs

from opsmith.targets import TaskFault
from opsmith.targets.step.execution import folds
from opsmith.targets.step.execution import judge as judge_module
from opsmith.targets.step.execution.bound import draw_bound
from opsmith.targets.step.execution.judge import judge_programs
from opsmith.targets.step.execution.run import RunError, execute_batch, execute_program
from opsmith.targets.step.execution.schedule import schedule_programs
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.language.check import check_program


def graph_of(task, program):
    """The graph of a program whatever it returns."""
    report = check_program(task, program)
    if report.graph is not None:
        return report.graph
    name = program.rsplit(" ", 1)[1]
    returned = next(stream for stream in reversed(report.streams) if stream.name == name)
    kind = returned.type
    loose = replace(task, outputs=(replace(task.outputs[0], dtype=kind.dtype, dims=kind.dims),))
    report = check_program(loose, program)
    assert report.graph is not None, [str(error) for error in report.errors]
    return report.graph


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(programs(), min_size=1, max_size=5), st.integers(0, 100))
def test_a_batch_on_three_draws_equals_each_program_on_each_draw(texts, seed):
    graphs = [graph_of(TASK, text) for text in texts]
    draws = [draw_bound(TASK, {}, seed + number) for number in range(3)]
    stackable = [graph for graph in graphs if graph.is_stackable]
    for graph, made in zip(stackable, execute_batch(stackable, Stack(draws)) if stackable else (), strict=True):
        for number, bindings in enumerate(draws):
            for stacked, alone in zip(made[0], execute_program(graph, bindings, 10**4)[0], strict=True):
                torch.testing.assert_close(stacked[number], alone, rtol=1e-5, atol=1e-5)
    for graph, made in zip(graphs, execute_batch(graphs, Stack(draws[:1])), strict=True):
        for together, slow in zip(made[0], interpret(graph, draws[0])[0], strict=True):
            torch.testing.assert_close(together[0], slow, rtol=1e-5, atol=1e-5)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), st.integers(0, 3), st.integers(1, 40))
def test_an_accum_that_takes_its_map_in_parts_equals_the_arbiter(program, seed, part):
    graph, bindings = graph_of(TASK, program), draw_bound(TASK, {}, seed)
    kept, folds.PART = folds.PART, part
    try:
        (made,) = execute_program(graph, bindings, 10**4)
    finally:
        folds.PART = kept
    for fast, slow in zip(made, interpret(graph, bindings)[0], strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-5, atol=1e-5)


ROUTED = replace(
    spec("fp32 [N, M]; Multihot(fp32, E) [M]", "fp32 [N, M]", sizes=SMALL | {"N": 3}),
    parameters=(stream("w", "fp32 [1]"),),
    fns=(
        replace(function("fp32", "fp32", "return [input[0] * input_data['w'][0]]"), name="Scale", func_name="fn_scale"),
        replace(
            function("fp32", "fp32", "return [state[0] * 2 + input[0] * input_data['w'][0]]", (1,)),
            name="Mix",
            func_name="fn_mix",
        ),
    ),
)
ROUTES = {
    "experts": "P = [step.Map(fn=fn_scale).apply(p) for p in P]\nreturn step.Merge(fn=fn_mix).apply((P, J))",
    "inner reduction": (
        "P = [step.Repeat(n=N).apply(step.Accum(fn=fn_mix, b=1).apply(p)) for p in P]\n"
        "return step.Merge(fn=fn_mix).apply((P, J))"
    ),
    "inner scan": "P = [step.Scan(fn=fn_mix, b=1).apply(p) for p in P]\nreturn step.Merge(fn=fn_mix).apply((P, J))",
}


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("draws", [1, 4])
def test_routed_streams_of_several_draws_are_kept_apart(name, draws):
    task = ROUTED
    text = "I, J = step.Copy().apply(E1)\nP = step.Partition(N=2).apply((E0, I))\n" + ROUTES[name]
    graph = check_program(task, text).graph
    assert graph.is_stackable
    bindings = [draw_bound(task, {}, seed) for seed in range(draws)]
    assert len({tuple(one.input_data["E1"].sum(0).tolist()) for one in bindings}) > 1 or draws == 1
    (made,) = execute_batch([graph], Stack(bindings))
    for number, one in enumerate(bindings):
        torch.testing.assert_close(made[0][0][number], interpret(graph, one)[0][0])


@pytest.mark.parametrize(
    ("ending", "wanted"),
    [
        ("A = step.Promote(b=2).apply(P[0])\nreturn E0", False),
        ("A = step.Accum(fn=fn_sum, b=2).apply(step.Promote(b=2).apply(P[0]))\nreturn E0", False),
        ("A = step.Bufferize(a=2).apply(step.Promote(b=2).apply(P[0]))\nreturn E0", False),
        ("A = step.Flatten(L=[1]).apply(P[0])\nreturn E0", True),
        ("A = step.Promote(b=0).apply(P[0])\nreturn E0", True),
        ("A = step.Accum(fn=fn_sum, b=1).apply(P[0])\nreturn E0", True),
    ],
)
def test_programs_that_mix_routed_entries_run_draw_by_draw(ending, wanted):
    task = spec("fp32 [N, M]; Multihot(fp32, E) [M]; fp32 [N, M]", "fp32 [N, M]")
    program = "P = step.Partition(N=2).apply((E2, E1))\n" + ending
    report = check_program(task, program)
    assert report.graph is not None, [str(error) for error in report.errors]
    assert report.graph.is_stackable == wanted


SHARED = spec("fp32 [M]; Multihot(fp32, E) [M]; Multihot(fp32, E) [M]", "fp32 [M]")
HALF = "\n".join(
    [
        "I, J = step.Copy().apply({index})",
        "P = step.Partition(N=2).apply((E0, I))",
        "return step.Merge(fn=fn_sum).apply((P, J))",
    ]
)


def test_what_programs_share_is_one_step():
    texts = [HALF.format(index="E1"), "# another layout\n\n" + HALF.format(index="E1"), HALF.format(index="E2")]
    batch = schedule_programs(tuple(check_program(SHARED, text).graph for text in texts))
    assert [step.op for step in batch.steps] == ["Partition", "Merge", "Partition", "Merge"]
    assert [len(member.lines) for member in batch.members] == [2, 2, 2]
    assert batch.members[0].outputs == batch.members[1].outputs != batch.members[2].outputs


def test_a_failure_is_that_of_the_programs_that_have_it_at_their_own_line():
    texts = [HALF.format(index="E1"), HALF.format(index="E2"), "# a\n# b\n" + HALF.format(index="E2"), "return E0"]
    graphs = [check_program(SHARED, text).graph for text in texts]
    drawn = draw_bound(SHARED, {}, 0)
    half = drawn.input_data["E2"].clone()
    half[1, 0] = 0.5
    bindings = replace(drawn, input_data={**drawn.input_data, "E2": half})
    first, second, third, fourth = execute_batch(graphs, Stack([drawn, bindings]))
    assert [len(first[0]), len(fourth[0])] == [1, 1]
    for error, line in ((second, 2), (third, 4)):
        assert isinstance(error, RunError)
        assert error.diagnostic.line == line
        assert "given 0.5 at index position (1), expert 0" in str(error)


FAULTY = replace(
    spec("fp32 [M]", "fp32 [M]"),
    fns=(
        replace(function("fp32", "fp32", "assert False, 'never'"), name="Bad", func_name="fn_bad"),
        replace(function("fp32", "fp32", "return [input[0] + 1]"), name="Inc", func_name="fn_inc"),
    ),
    outputs=(output("S0", "fp32 [M]", "input_data['E0'] + 1"),),
)


def test_a_fault_of_a_fn_concerns_only_the_programs_that_use_it():
    faulty = replace(
        FAULTY, fns=(replace(FAULTY.fns[0], apply="assert input[0] > 9, 'low'\nreturn [input[0]]"), FAULTY.fns[1])
    )
    texts = [
        "return step.Map(fn=fn_inc).apply(E0)",
        "return step.Map(fn=fn_bad).apply(E0)",
        "return step.Map(fn=fn_inc).apply(step.Map(fn=fn_bad).apply(E0))",
    ]
    right, wrong, behind = judge_programs(
        faulty, [check_program(faulty, text).graph for text in texts], make_trials(faulty)[0].data
    )
    assert right.errors == ()
    assert isinstance(wrong, TaskFault)
    assert isinstance(behind, TaskFault)
    assert "low" in str(wrong)


def test_programs_that_do_too_much_at_once_run_in_portions_with_the_same_result(monkeypatch):
    texts = [
        "return step.Map(fn=fn_inc).apply(E0)",
        "A = step.Map(fn=fn_inc).apply(E0)\nreturn step.Map(fn=fn_inc).apply(A)",
        "return E0",
    ]
    graphs = [check_program(FAULTY, text).graph for text in texts]
    case = make_trials(FAULTY)[0].data
    wanted = judge_programs(FAULTY, graphs, case)
    assert [bool(result.errors) for result in wanted] == [False, True, True]
    for limit in (1, 40):
        monkeypatch.setattr(judge_module, "AT_ONCE", limit)
        assert judge_programs(FAULTY, graphs, case) == wanted


FICKLE = replace(
    FAULTY,
    fns=(
        FAULTY.fns[1],
        replace(
            function("fp32", "fp32", "return [state[0] * torch.rand(()) + input[0]]", (0,)),
            name="Fickle",
            func_name="fn_fickle",
        ),
    ),
    outputs=(output("S0", "fp32 [M]", "input_data['E0'] + 1"),),
)


def test_a_fn_that_cannot_be_prepared_concerns_only_the_programs_that_use_it():
    texts = [
        "return step.Map(fn=fn_inc).apply(E0)",
        "return E0",
        "X = step.Scan(fn=fn_fickle, b=1).apply(step.Promote(b=1).apply(E0))\nreturn E0",
    ]
    graphs = [check_program(FICKLE, text).graph for text in texts]
    assert all(graphs)
    right, wrong, fault = judge_programs(FICKLE, graphs, make_trials(FICKLE)[0].data)
    assert right.errors == ()
    assert wrong.errors
    assert isinstance(fault, TaskFault)


UNREAD_FN = {
    "another shape": ("return [input[0].expand(2)]", "a tensor of shape (2,)"),
    "another dtype": ("return [input[0].long()]", "and int64"),
    "a value too many": ("return [input[0], input[0]]", "2 values"),
    "another shape of some elements": ("return [input[0] if input[0] < 1.5 else input[0].expand(2)]", "shape (2,)"),
    "an exception": ("return [input[0][7]]", "IndexError"),
}


@pytest.mark.parametrize(("body", "words"), UNREAD_FN.values(), ids=list(UNREAD_FN))
@pytest.mark.parametrize(
    "use", ["step.Map(fn=fn_bad).apply(A)", "step.Map(fn=fn_inc).apply(step.Map(fn=fn_bad).apply(A))"]
)
def test_a_fn_is_its_authors_fault_where_nobody_reads_its_results_too(body, words, use):
    task = replace(FAULTY, fns=(replace(FAULTY.fns[0], apply=body), FAULTY.fns[1]))
    right = "return step.Map(fn=fn_inc).apply(E0)"
    unread = f"A, B = step.Copy().apply(E0)\nX = {use}\nreturn step.Map(fn=fn_inc).apply(B)"
    graphs = [check_program(task, text).graph for text in (right, unread)]
    plain, fault = judge_programs(task, graphs, make_trials(task)[0].data)
    assert plain.errors == ()
    assert isinstance(fault, TaskFault)
    assert fault.diagnostic.kind == "FN"
    assert words in str(fault)


def test_a_right_fn_that_nobody_reads_changes_nothing_and_runs_at_one_draw(monkeypatch):
    text = "A, B = step.Copy().apply(E0)\nX = step.Map(fn=fn_bad).apply(A)\nreturn step.Map(fn=fn_inc).apply(B)"
    task = replace(FAULTY, fns=(replace(FAULTY.fns[0], apply="return [input[0]]"), FAULTY.fns[1]))
    graph, draws = check_program(task, text).graph, []
    original = judge_module.execute_batch
    monkeypatch.setattr(
        judge_module,
        "execute_batch",
        lambda graphs, stack, **options: draws.append((len(stack), options)) or original(graphs, stack, **options),
    )
    for trial in make_trials(task)[:4]:
        assert judge_programs(task, [graph], trial.data)[0].errors == ()
    assert [count for count, options in draws if options] == [1, 1]


def test_the_first_draw_decides_whatever_a_later_one_brings_to_light():
    probe = make_trials(FAULTY)[0].data.stack.inputs["E0"]
    later = float(probe[1:].max())  # of a later draw only
    assert later > float(probe[0].max())
    body = f"assert input[0] < {later - 1e-9!r}, 'late'\nreturn [input[0]]"
    task = replace(FAULTY, fns=(replace(FAULTY.fns[0], apply=body),))
    graph = check_program(task, "return step.Map(fn=fn_bad).apply(E0)").graph
    case = make_trials(task)[0].data
    (judged,) = judge_programs(task, [graph], case)
    assert not isinstance(judged, TaskFault)
    assert "base seed 0" in judged.errors[0].where


def test_the_error_of_draws_judged_one_by_one_is_the_largest(monkeypatch):
    graph = check_program(FAULTY, "return step.Map(fn=fn_inc).apply(E0)").graph
    task = replace(FAULTY, outputs=(output("S0", "fp32 [M]", "input_data['E0'] + 1 + 1e-10 * input_data['E0'].abs()"),))
    case = make_trials(task)[0].data
    (together,) = judge_programs(task, [graph], case)
    monkeypatch.setattr(judge_module, "AT_ONCE", 1)
    (apart,) = judge_programs(task, [graph], case)
    assert together.max_abs_error == apart.max_abs_error > 0


def test_a_partition_of_a_routed_stream_does_not_shrink_what_is_counted():
    task = spec("fp32 [M]; Multihot(fp32, E) [M]; Multihot(fp32, E) [1]", "fp32 [M]", sizes=SMALL | {"M": 300})
    text = (
        "A, B = step.Partition(N=2).apply((E0, E1))\nA = step.Promote(b=1).apply(A)\n"
        "P, Q = step.Partition(N=2).apply((A, E2))\nX = step.Map(fn=fn_sq).apply(step.Repeat(n=20000).apply(P))\nreturn E0"
    )
    report = check_program(task, text)
    assert report.unrolled is not None, [str(error) for error in report.errors]
    with pytest.raises(RunError, match="a stream of 6000000 elements"):
        execute_program(report.unrolled, draw_bound(task, {}, 0), 100)
