"""What is said of many sizes at once is what the checker says of each of them."""

import numpy as np
import pytest
from authors import stream, task

from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.suites import load_tasks
from opsmith.targets.step import spec_of
from opsmith.targets.step.hidden.many import trace_program
from opsmith.targets.step.hidden.points import LARGEST, draw_points, find_changing_sizes, own_point
from opsmith.targets.step.hidden.variants import make_key, survey_sizes
from opsmith.targets.step.hidden.work import MAX_NUMBERS, estimate_work
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import TaskSpec

SPEC: TaskSpec = spec_of(load_tasks(("gemm_2",))[0].text)
HEAD = """\
E2 = step.Streamify().apply(step.Repeat(n=M).apply(step.Bufferize(a=1).apply(E1)))
A = step.Accum(fn=fn_add, b=1).apply(step.Map(fn=fn_mul).apply((E0, E2)))
A, B = step.Copy().apply(A)
B = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=2).apply(B))
"""
TWICE = "A = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n={n}).apply(A))\nreturn A"
TEXTS = [
    *(
        f"return [A, B, A][{index}]"
        for index in (
            "K_value // 5", "-K_value", "K_value - 2 * (K_value // 2)", "(M_value - N_value) // 3", "K_value // M_value",
            "K_value / 3", "0 * (K_value / M_value)", "M_value * N_value // (K_value - 3)", "-(-K_value // 4) - 1",
            "len([i for i in range(K_value)]) // 9", "[0, [1, 2][M_value // 4]][N_value // 6]",
        )
    ),
    *(
        f"for i in range({bounds}):\n    A = step.Accum(fn=fn_add, b=1).apply(step.Promote(b=0).apply(A))\nreturn A"
        for bounds in (
            "K_value // 7", "3, K_value", "K_value, 3, -1", "0, 9, K_value", "K_value - M_value", "K_value // 4, 2 * K_value, 5",
            "2 - K_value", "K", "-K_value, -2",
        )
    ),
    *(TWICE.format(n=n) for n in ("K_value", "K_value // 3", "K_value // 5 + 1", "K_value // K_value", "M_value * K_value / 3",
                                  "K // 3", "2 * K_value - 17", "M * K_value", "K_value // 2 * 2")),
    "for i, x in zip(range(K_value), [1, 2, 3]):\n    A, B = B, A\nreturn A",
    "A = step.Promote(b=K_value // 5).apply(A)\nreturn step.Flatten(L=[1, 2][:1]).apply(A)",
    "A = step.Promote(b=[2, 0, 0, 0][K_value // 8]).apply(A)\nreturn step.Flatten(L=[2 - 1 * (K_value // 20)]).apply(A)",
    "A = step.Reshape(S=[M, N, 1][K_value // 8], L=[0]).apply(A)\nreturn step.Flatten(L=[1]).apply(A)",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_points_that_agree_have_the_graph_of_the_one_in_control(text):
    found = draw_points(SPEC, 7, [3, 5, 7])
    draw = np.random.default_rng(0)
    small = np.flatnonzero(np.max(found.columns, axis=0) < 40)
    for control in (0, *map(int, draw.choice(small, 3))):
        made = trace_program(SPEC, HEAD + text, found, control)
        key = _key(HEAD + text, found.sizes_at(control))
        assert (make_key(made.graph) if made.graph else None) == key
        for point in draw.choice(small, 25):
            agreed = bool(made.agrees[point])
            assert not agreed or _key(HEAD + text, found.sizes_at(int(point))) == key


def _key(text, sizes):
    graph = check_program(SPEC, text, sizes).graph
    return None if graph is None else make_key(graph)


def test_a_graph_is_told_by_what_its_outputs_are_made_of():
    base = HEAD + "return A"
    other = HEAD.replace("A, B", "A, C").replace("apply(B)", "apply(C)") + "C, D = step.Copy().apply(A)\nreturn D"
    assert _key(base, SPEC.sizes) == _key(other, SPEC.sizes) != _key(HEAD + "return B", SPEC.sizes)


@pytest.mark.parametrize(
    ("index", "size"),
    [
        ("K_value // 65", 65),
        ("1 // (1 + (K_value - 777777) * (K_value - 777777))", 777777),
        ("K_value // 1000003", 1000003),
    ],
)
def test_the_smallest_size_at_which_a_program_changes_is_found(index, size):
    others = survey_sizes(SPEC, HEAD + f"return [A, B][{index}]", 1).other_programs
    assert others[0].list_places(2)[0] == {"K": size, "M": 5, "N": 7}


def test_a_size_that_no_number_of_the_text_tells_is_found():
    """Every size of one symbol is looked at where nothing else tells."""
    hidden = "1 // (1 + (K_value - 700 * 1111 + 3 * 5 * 7) * (K_value - 700 * 1111 + 3 * 5 * 7))"
    (other,) = survey_sizes(SPEC, HEAD + f"return [A, B][{hidden}]", 1).other_programs
    assert other.list_places(2)[0]["K"] == 700 * 1111 - 105


def test_sizes_are_those_that_the_tasks_shape_sets_change():
    assert find_changing_sizes(SPEC) == {"K": 64, "M": 32, "N": 64}
    quarter = task(inputs=(stream("E0", "fp32 [D/4, N]"),), parameters=())
    assert all(sizes % 4 == 0 for sizes in draw_points(quarter, 1).sizes_of("D"))
    assert set(own_point(quarter).names) == set().union(*choose_shape_sets(quarter.problem).values())


def test_points_depend_on_the_seed_alone_and_reach_far():
    one, again, other = (draw_points(SPEC, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.columns, again.columns)
    assert not np.array_equal(one.columns, other.columns)
    assert one.sizes_at(0) == dict(SPEC.sizes)
    for name in one.names:
        sizes = set(map(int, one.sizes_of(name)))
        assert set(range(1, 2049)) <= sizes
        assert LARGEST // 2 < max(sizes) <= LARGEST


def test_work_at_far_sizes_is_estimated_from_near_ones():
    import torch

    seen = []

    def pairs(sizes):
        seen.append(sizes["K"])
        torch.rand(sizes["K"], sizes["K"])

    def numbers(sizes):
        torch.rand(sizes["K"])

    assert not estimate_work(pairs, {"K": 2**20, "M": 3}).is_affordable()
    assert max(seen) <= 128
    work = estimate_work(numbers, {"K": 2**20})
    assert work.is_affordable()
    assert 2**19 < work.numbers < 2**21 < MAX_NUMBERS
