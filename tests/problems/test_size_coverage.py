"""Which sizes of a symbol no hidden draw can reach is said, and none is that a draw has."""

import pytest
from problems.examples import RMS_NORM, read_example

from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.size_coverage import find_unreached, write_unreached
from opsmith.problems.size_kinds import SizeRange, Sizes
from opsmith.records import Level, Scrutiny
from opsmith.suites import load_tasks
from opsmith.targets.native.task import read_native_task

SQUARE = """
problem: gram
dims: {N: 1024}
inputs: [{name: x, dtype: fp32, shape: [N, N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [N, N]}]
reference: |
  def gram(x):
      return x @ x.T
shapes: {wide: {N: 3000}}
"""


def test_sizes_that_are_too_large_for_a_draw_are_out_of_reach() -> None:
    shares = find_unreached(read_example(SQUARE))
    for level in Level:  # both tensors have 2^22 numbers at N = 1448, of 6000
        assert shares[level]["N"] == pytest.approx(1 - 1448 / 6000, abs=0.02)
    assert write_unreached(shares).startswith("cheap level: N 7")


def test_no_size_of_a_bundled_problem_is_out_of_reach_of_the_full_level() -> None:
    for task in load_tasks(["kernels"], "c"):
        shares = find_unreached(read_native_task(task.text)[0])
        assert max(shares[Level.FULL].values()) == 0, task.id


def test_an_odd_size_of_a_halved_dim_is_no_size_at_all() -> None:
    halved = read_example(RMS_NORM, ("name: weight, dtype: bf16, shape: [N]", "name: weight, dtype: bf16, shape: [2, N/2]"),
        ("N: 129", "N: 130"), ("N: 511", "N: 510"))  # fmt: skip
    assert find_unreached(halved)[Level.FULL]["N"] == 0


@pytest.mark.parametrize(
    ("range_", "inside", "outside"),
    [
        (SizeRange(3, 67, form="odd"), [3, 5, 67], [1, 2, 4, 69]),
        (SizeRange(2, 67, form="prime"), [2, 3, 61, 67], [1, 4, 63, 71]),
        (SizeRange(4, 100, form="power"), [4, 8, 64], [2, 6, 100, 128]),
        (SizeRange(30, 100, 32), [32, 64, 96], [30, 31, 33, 128]),
    ],
)
def test_a_range_draws_what_it_holds_and_nothing_else(range_: SizeRange, inside: list[int], outside: list[int]) -> None:
    assert all(map(range_.holds_size, inside))
    assert not any(map(range_.holds_size, outside))


def test_every_kind_draws_sizes_that_it_holds() -> None:
    problem = read_example(RMS_NORM)
    pool: HiddenPool[Sizes] = HiddenPool(problem, lambda sizes, _: sizes)
    for level in Level:
        for member, sizes in pool.plan_level(Scrutiny("a secret", level)):
            kind = pool.kinds[level][member.kind]
            assert all(kind.holds_size(name, size) for name, size in sizes.items()), kind.name
