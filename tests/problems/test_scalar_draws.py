"""Hidden draws call programs with other numbers than the file's, near ones, unless the file says that they are fixed."""

import pytest
from problems.examples import RMS_NORM, read_example

from opsmith.errors import TaskError
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.native import NativeData
from opsmith.problems.problem import Problem
from opsmith.problems.scalar_draws import draw_scalars
from opsmith.records import Level, Scrutiny

FIXED = RMS_NORM.replace("outputs:", "fixed: [eps]\noutputs:")


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (1e-5, 1e-6, 1e-4),
        (0.9, 0.5, 1.0),
        (-0.5, -0.9, -0.1),
        (10_000.0, 1000.0, 80_000.0),
        (7, 2, 56),
        (-8, -64, -2),
    ],
)
def test_a_number_keeps_its_sign_and_moves_by_a_factor(value: float, least: float, most: float) -> None:
    problem = Problem((), (), (), scalars={"number": value})
    drawn = [draw_scalars(problem, seed)["number"] for seed in range(200)]
    assert all(least <= number <= most and type(number) is type(value) for number in drawn)
    assert min(drawn) < value < max(drawn)
    assert drawn.count(value) == 0


@pytest.mark.parametrize("value", [10_000.0, 1.0, 1.5, -3.0])
def test_a_number_of_one_or_more_moves_by_a_factor_of_two_to_eight(value: float) -> None:
    problem = Problem((), (), (), scalars={"number": value})
    factors = sorted(draw_scalars(problem, seed)["number"] / value for seed in range(300))
    assert 0.124 < factors[0] < 0.15
    assert 6.7 < factors[-1] < 8.01
    assert all(factor < 0.501 or factor > 1.999 for factor in factors)
    assert 100 < sum(factor > 1 for factor in factors) < 200


def test_the_least_whole_number_that_moves_is_two() -> None:
    for value in (2, -2):
        problem = Problem((), (), (), scalars={"number": value})
        drawn = {abs(draw_scalars(problem, seed)["number"]) for seed in range(300)}
        assert drawn == {2, *range(4, 17)}


def test_what_may_be_a_switch_and_what_is_fixed_stays() -> None:
    scalars = {"causal": 1, "axis": -1, "offset": 0, "bias": 0.0, "low": float("-inf"), "eps": 1e-5}
    problem = Problem((), (), (), scalars=scalars, fixed=("eps",))
    assert all(draw_scalars(problem, seed) == scalars for seed in range(20))


def test_hidden_draws_have_other_scalars_and_so_have_hand_made_inputs() -> None:
    draws = list(NativeData(read_example(RMS_NORM)).draw_hidden(Scrutiny("a secret", Level.FULL)))
    assert all(draw.problem.scalars["eps"] != 1e-5 for draw in draws)
    assert len({draw.problem.scalars["eps"] for draw in draws}) == len(draws)
    cases = [draw for draw in draws if draw.is_case]
    assert len(cases) == 2  # one of each level
    assert all(draw.declared.input_data["x"].abs().max() < 0.1 for draw in cases)
    assert cases[0].label == f"case 0 at hidden numbers eps = {cases[0].problem.scalars['eps']}"
    assert draws[0].label.startswith("hidden sizes M = ")


def test_scalars_are_the_files_where_the_reference_fails_with_others() -> None:
    refusing = ("return x * torch", "assert 0.9e-5 < eps < 1.1e-5\n      return x * torch")
    draws = list(NativeData(read_example(RMS_NORM, refusing)).draw_hidden(Scrutiny("a secret")))
    assert len(draws) >= 4
    assert all(draw.problem.scalars == {"eps": 1e-5} and not draw.is_case for draw in draws)


def test_a_file_may_fix_scalars() -> None:
    file = read_problem(FIXED)
    assert file.problem.fixed == ("eps",)
    assert read_problem(write_problem(file)) == file
    assert hash_problem(file.problem) != hash_problem(read_problem(RMS_NORM).problem)
    draws = NativeData(file.problem).draw_hidden(Scrutiny("a secret"))
    assert all(draw.problem.scalars == {"eps": 1e-5} for draw in draws)


@pytest.mark.parametrize(("line", "words"), [("[eps, eps]", "'eps' again"), ("[M]", "that is no scalar")])
def test_fixed_names_scalars_once(line: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        read_problem(FIXED.replace("[eps]", line))
