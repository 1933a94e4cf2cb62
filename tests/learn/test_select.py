import pytest
from tiny_target import tiny_task

from opsmith.errors import UsageError
from opsmith.learn.select import Past, Step, adaptive, get_strategy, hardest_first, without
from opsmith.records import Experience

A, B, C, D = (Experience(tiny_task(f"t_{i}", "x y +"), "x y +", rate, 0) for i, rate in enumerate([0.1, 0.3, 0.6, 0.9]))


def test_a_running_example_of_algorithm_1() -> None:
    """Five tasks, m = 3: two are solved without examples, one by hard ones, one by all; the last never."""
    rounds: list[tuple[list[Experience], list[Experience], Step]] = [
        # (D when the round starts, what it solves, what it shows)
        ([], [B, D], Step(0, "none")),
        ([B, D], [], Step(1, "H", (B,))),
        ([B, D], [C], Step(1, "HM", (B, D))),
        ([B, D, C], [], Step(2, "H", (B,))),
        ([B, D, C], [], Step(2, "HM", (B, C))),
        ([B, D, C], [A], Step(2, "HME", (B, C, D))),
        ([B, D, C, A], [], Step(3, "H", (A, B))),  # the boundary moved: easier examples, and fewer
        ([B, D, C, A], [], Step(3, "HM", (A, B, C))),
        ([B, D, C, A], [], Step(3, "HME", (A, B, C, D))),
    ]
    past: list[Past] = []
    for known, solved, expected in rounds:
        assert adaptive(known, past, 3) == expected
        past.append(Past(expected.cycle, len(solved)))
    assert adaptive([B, D, C, A], past, 3) is None  # the demonstrations are used up


def test_nothing_solved_without_demonstrations_is_the_end() -> None:
    assert adaptive([], [Past(0, 0)], 3) is None


def test_a_run_that_starts_with_experiences_shows_the_hard_ones_at_once() -> None:
    assert adaptive([D, A], [], 2) == Step(1, "H", (A,))


def test_more_than_three_levels_have_labels_too() -> None:
    past = [Past(1, 0)] * 3
    assert adaptive([A, B, C, D], past, 4) == Step(1, "HMEE", (A, B, C, D))


def test_the_control_never_shows_an_example() -> None:
    assert without([A, B], [Past(0, 0)] * 5, 3) == Step(0, "none")


def test_an_unknown_strategy_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match="known: adaptive, none"):
        get_strategy("best")


def test_hardest_first_is_the_order_of_a_prompt() -> None:
    assert hardest_first([C, A, D, B]) == [A, B, C, D]
