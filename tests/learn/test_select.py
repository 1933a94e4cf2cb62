import pytest
from tiny_target import tiny_task

from opsmith.errors import UsageError
from opsmith.learn.select import (
    STRATEGIES,
    Past,
    Selection,
    get_strategy,
    hardest_first,
    select_adaptive,
    select_all,
    select_gain,
    select_nothing,
    select_random,
    select_similar,
)
from opsmith.records import Experience
from opsmith.settings import Settings

A, B, C, D = (Experience(tiny_task(f"t_{i}", "x y +"), "x y +", rate, 0) for i, rate in enumerate([0.1, 0.3, 0.6, 0.9]))


def test_a_running_example_of_algorithm_1() -> None:
    """Five tasks, m = 3: two are solved without examples, one by hard ones, one by all; the last never."""
    rounds: list[tuple[list[Experience], list[Experience], Selection]] = [
        # (D when the round starts, what it solves, what it shows)
        ([], [B, D], Selection(0, "none")),
        ([B, D], [], Selection(1, "H", (B,))),
        ([B, D], [C], Selection(1, "HM", (B, D))),
        ([B, D, C], [], Selection(2, "H", (B,))),
        ([B, D, C], [], Selection(2, "HM", (B, C))),
        ([B, D, C], [A], Selection(2, "HME", (B, C, D))),
        ([B, D, C, A], [], Selection(3, "H", (A, B))),  # the boundary moved: easier examples, and fewer
        ([B, D, C, A], [], Selection(3, "HM", (A, B, C))),
        ([B, D, C, A], [], Selection(3, "HME", (A, B, C, D))),
    ]
    past: list[Past] = []
    for known, solved, expected in rounds:
        assert select_adaptive(known, past, 3) == expected
        past.append(Past(expected.cycle, len(solved)))
    assert select_adaptive([B, D, C, A], past, 3) is None  # the demonstrations are used up


def test_nothing_solved_without_demonstrations_is_the_end() -> None:
    assert select_adaptive([], [Past(0, 0)], 3) is None


def test_a_run_that_starts_with_experiences_shows_the_hard_ones_at_once() -> None:
    assert select_adaptive([D, A], [], 2) == Selection(1, "H", (A,))


def test_more_than_three_levels_have_labels_too() -> None:
    past = [Past(1, 0)] * 3
    assert select_adaptive([A, B, C, D], past, 4) == Selection(1, "HMEE", (A, B, C, D))


def test_the_control_never_shows_an_example() -> None:
    assert select_nothing([A, B], [Past(0, 0)] * 5, 3) == Selection(0, "none")


def test_an_unknown_strategy_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match="known: adaptive, gain, all, random, similar, none"):
        get_strategy("best")


def test_hardest_first_is_the_order_of_a_prompt() -> None:
    assert hardest_first([C, A, D, B]) == [A, B, C, D]


def test_settings_name_the_strategies_that_exist() -> None:
    assert [Settings(selection=name).method.selection for name in STRATEGIES] == list(STRATEGIES)


@pytest.mark.parametrize("past", [[], [Past(0, 0)], [Past(0, 2)], [Past(1, 0)], [Past(1, 1)], [Past(1, 1), Past(2, 0)]])
def test_all_at_once_makes_the_rounds_of_one_level(past: list[Past]) -> None:
    one, every = select_adaptive([A, B, C, D], past, 1), select_all([A, B, C, D], past, 3)
    assert (one is None) == (every is None)
    if one is not None and every is not None:
        assert (every.cycle, every.demonstrations) == (one.cycle, one.demonstrations)


def rounds_of(strategy: str, solved: list[int]) -> list[Selection]:
    """The steps of a run in which the rounds solve so many tasks, until nothing is left to try."""
    steps, past = [], []
    while (step := get_strategy(strategy)([A, B, C, D], past, 3, 7)) is not None:
        steps.append(step)
        past.append(Past(step.cycle, solved[len(past)] if len(past) < len(solved) else 0))
    return steps


@pytest.mark.parametrize("strategy", ["random", "similar"])
@pytest.mark.parametrize("solved", [[], [0, 1], [1, 0, 0, 1]])
def test_the_baselines_make_the_rounds_of_the_adaptive_strategy(strategy: str, solved: list[int]) -> None:
    assert [s.cycle for s in rounds_of(strategy, solved)] == [s.cycle for s in rounds_of("adaptive", solved)]


def test_a_random_choice_is_as_large_as_the_hardest_stratum_and_new_in_every_round() -> None:
    many = [Experience(tiny_task(f"r_{i}", "x y +"), "x y +", (i + 1) / 20, 0) for i in range(12)]
    drawn = [select_random(many, [Past(1, 0)] * n, 3, seed) for seed in (0, 1) for n in (0, 1, 2)]
    shown = [step.demonstrations for step in drawn if step is not None]
    assert [len(found) for found in shown] == [4] * 6 == [len(select_adaptive(many, [], 3).demonstrations)] * 6  # type: ignore[union-attr]
    assert len(set(shown)) == 6
    assert all(list(found) == hardest_first(found) for found in shown)
    assert drawn[1] == select_random(many, [Past(1, 0)], 3, 0), "the same draw for the same seed and round"


def test_a_random_choice_gives_every_experience_the_same_chance() -> None:
    many = [Experience(tiny_task(f"r_{i}", "x y +"), "x y +", (i + 1) / 20, 0) for i in range(6)]
    counts = dict.fromkeys(many, 0)
    for seed in range(300):
        for item in select_random(many, [], 3, seed).demonstrations:  # type: ignore[union-attr]
            counts[item] += 1
    assert all(70 <= count <= 130 for count in counts.values()), counts  # 2 of 6, 300 times: 100 +- 8


def test_each_task_is_shown_what_is_most_like_it_first() -> None:
    sums, products = tiny_task("sum_0", "x y + z +", trials=1), tiny_task("mul_0", "u v *", seed=3, trials=1)
    like = [Experience(products, "p q *", 0.4, 0), Experience(sums, "p q +", 0.6, 0)]
    step = select_similar(like, [], 2)
    assert step is not None
    assert step.nearest == 1
    assert [item.task.id for item in step.shown_to(tiny_task("new", "x y + z -", seed=9, trials=1))] == ["sum_0"]
    assert [item.task.id for item in step.shown_to(tiny_task("new", "u v -", seed=9, trials=1))] == ["mul_0"]
    assert len(step.shown_to_any([tiny_task("new", "u v -", seed=9, trials=1)])) == 1
    last = select_similar(like, [Past(1, 0)], 2)
    assert last is not None
    assert [item.task.id for item in last.shown_to(tiny_task("new", "u v -", seed=9, trials=1))] == ["mul_0", "sum_0"]


def test_selection_by_gain_shows_what_gained_most_first() -> None:
    gained = [Experience(D.task, D.source, 0.9, 0, gain=2.0), A]
    assert select_gain(gained, [], 2) == Selection(1, "H", (gained[0],))
    assert select_adaptive(gained, [], 2) == Selection(1, "H", (A,))
    assert select_gain([D, A], [], 2) == select_adaptive([D, A], [], 2)
