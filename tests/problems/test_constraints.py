"""Sizes keep a problem's constraints: what a file states is checked, what is drawn follows them."""

import pytest
from problems.examples import SOFTMAX, read_example

from opsmith.errors import TaskError
from opsmith.problems.constraints import (
    ConstraintError,
    follow_constraints,
    list_following,
    parse_constraint,
    satisfies_constraint,
)
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.size_kinds import Sizes
from opsmith.records import Scrutiny

POINTERS = """
problem: segment_count
dims: {B: 4, P: 5, H: 8, G: 2}
inputs:
  - {name: x, dtype: fp32, shape: [P, H, G], data: normal}
outputs:
  - {name: y, dtype: fp32, shape: [B]}
constraints:
  - P == B + 1
  - H % G == 0
reference: |
  def segment_count(x):
      return x.sum((1, 2))[1:]
shapes:
  odd: {B: 6, P: 7, H: 9, G: 3}
"""


def collect_hidden(text: str) -> list[Sizes]:
    """Sizes of many programs."""
    problem = read_problem(text).problem
    pool: HiddenPool[Sizes] = HiddenPool(problem, lambda sizes, _: sizes)
    return [sizes for number in range(40) for sizes in pool.list_materials(Scrutiny(str(number)))]


def test_hidden_sizes_keep_every_constraint() -> None:
    drawn = collect_hidden(POINTERS)
    assert len(drawn) > 40
    assert all(sizes["P"] == sizes["B"] + 1 and sizes["H"] % sizes["G"] == 0 for sizes in drawn)
    assert len({sizes["B"] for sizes in drawn}) > 10
    assert max(sizes["B"] for sizes in drawn) >= 1.3 * 6


def test_a_dim_that_follows_is_computed_not_drawn() -> None:
    assert follow_constraints(["P == B + 1", "2 * P == Q"], {"B": 2, "P": 9, "Q": 9}) == {"B": 2, "P": 3, "Q": 6}
    assert follow_constraints(["B - 3 == P"], {"B": 2, "P": 9}) is None, "no size of at least 1"
    assert list(list_following(["P == Q + 1", "Q == B * 2", "B == Q // 2"])) == ["Q", "P"]
    assert list_following(["P * 2 == B * 3", "P <= B"]) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P", "compares nothing"),
        ("P == __import__('os').getpid()", "no comparison of dims"),
        ("P == x.numel()", "no comparison of dims"),
        ("P == len(x)", "no sum"),
        ("P == 2 ** 999999", "no sum"),
        ("P == [1]", "no comparison"),
        ("P in B", "In is none of"),
        ("P == (1", "cannot parse"),
        ("P == " + "1" * 300, "characters"),
        ("P == True", "no sum"),
    ],
)
def test_what_is_no_constraint_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        parse_constraint(text)


def test_what_has_no_value_is_not_kept() -> None:
    assert not satisfies_constraint("H % G == 0", {"H": 8, "G": 0})
    assert not satisfies_constraint("H * H * H * H * H < 1", {"H": 2**31})
    assert satisfies_constraint("1 <= min(G, H) <= 8", {"H": 8, "G": 2})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("P == B + 1", "P == B + 2", "P == B + 2, which does not hold at the base sizes"),
        ("P: 7,", "P: 8,", "P == B + 1, which does not hold at shape odd"),
        ("P == B + 1", "P == C + 1", "the name C"),
        ("P == B + 1", "P = B + 1", "Python cannot parse it"),
    ],
)
def test_sizes_of_a_file_must_keep_its_constraints(before: str, after: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_problem(POINTERS.replace(before, after))
    assert words in str(caught.value)
    assert "constraints[0]" in str(caught.value)


def test_constraints_are_part_of_the_problem_and_its_text() -> None:
    file = read_problem(POINTERS)
    assert file.problem.constraints == ("P == B + 1", "H % G == 0")
    assert read_problem(write_problem(file)) == file
    without = read_problem(POINTERS.replace("  - H % G == 0\n", ""))
    assert hash_problem(without.problem) != hash_problem(file.problem)
    assert "constraints" not in write_problem(read_problem(SOFTMAX))
    assert read_example(SOFTMAX).constraints == ()
