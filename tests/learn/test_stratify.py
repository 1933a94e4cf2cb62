from hypothesis import given
from hypothesis import strategies as st
from tiny_target import tiny_task

from opsmith.learn.select import rank_by_gain, stratify_experiences
from opsmith.records import Experience

TASKS = [tiny_task(f"t_{i:02}", "x y +") for i in range(12)]


def earned(*rates: float) -> list[Experience]:
    return [Experience(task, "x y +", rate, 0) for task, rate in zip(TASKS, rates, strict=False)]


def names(strata: list[tuple[Experience, ...]]) -> list[list[str]]:
    return [[item.task.id for item in stratum] for stratum in strata]


def test_bins_are_as_even_as_possible_and_hardest_comes_first() -> None:
    strata = stratify_experiences(earned(0.7, 0.1, 0.5, 0.3, 0.2, 0.9, 0.8), 3)
    assert [[item.success_rate for item in stratum] for stratum in strata] == [[0.1, 0.2, 0.3], [0.5, 0.7], [0.8, 0.9]]


def test_equal_rates_share_a_stratum_even_where_a_bin_boundary_parts_them() -> None:
    assert names(stratify_experiences(earned(0.1, 0.2, 0.2, 0.2, 0.5), 3)) == [
        ["t_00", "t_01", "t_02", "t_03"],
        ["t_04"],
    ]


def test_one_experience_is_hard_and_none_are_no_strata() -> None:
    assert names(stratify_experiences(earned(1.0), 3)) == [["t_00"]]
    assert stratify_experiences([], 3) == []


@given(st.lists(st.integers(1, 8), max_size=12), st.integers(1, 6))
def test_strata_are_what_the_definition_says(eighths: list[int], levels: int) -> None:
    experiences = earned(*(count / 8 for count in eighths))
    ordered = sorted(experiences, key=lambda item: (item.success_rate, item.task.id))
    sizes = [len(ordered) // levels + (i < len(ordered) % levels) for i in range(levels)]
    ends = [sum(sizes[: i + 1]) for i in range(levels)]
    boundaries = [ordered[end - 1].success_rate for end, size in zip(ends, sizes, strict=True) if size]
    home = {item.task.id: min(i for i, b in enumerate(boundaries) if b >= item.success_rate) for item in ordered}
    expected = [[item.task.id for item in ordered if home[item.task.id] == i] for i in range(len(boundaries))]
    assert names(stratify_experiences(experiences, levels)) == [stratum for stratum in expected if stratum]
    assert stratify_experiences(experiences[::-1], levels) == stratify_experiences(experiences, levels)


def test_by_gain_what_gained_most_comes_first_and_difficulty_decides_the_rest() -> None:
    experiences = [
        Experience(task, "x y +", rate, 0, gain=gain)
        for task, rate, gain in zip(TASKS, (0.9, 0.5, 0.1, 0.2), (3.0, 1.5, None, None), strict=False)
    ]
    assert names(stratify_experiences(experiences, 2, rank_by_gain)) == [["t_00", "t_01"], ["t_02", "t_03"]]
    assert names(stratify_experiences(experiences, 2)) == [["t_02", "t_03"], ["t_01", "t_00"]]


def test_by_gain_without_any_gain_is_by_difficulty() -> None:
    experiences = earned(0.7, 0.1, 0.5, 0.3)
    assert stratify_experiences(experiences, 3, rank_by_gain) == stratify_experiences(experiences, 3)
