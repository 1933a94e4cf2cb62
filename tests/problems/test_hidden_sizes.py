"""Hidden sizes belong to a secret, are none that the file states, reach beyond those, and are prepared once a problem."""

from collections.abc import Callable

import pytest
from problems.examples import RMS_NORM, SOFTMAX, read_example

from opsmith.problems import hidden_sizes
from opsmith.problems.hidden_sizes import MOST_NUMBERS, HiddenPool
from opsmith.problems.native import NativeData
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import has_whole_dims
from opsmith.problems.size_kinds import Sizes, list_varying
from opsmith.records import Level, Scrutiny
from opsmith.suites import load_tasks
from opsmith.targets.native.task import read_native_task

SECRETS = [Scrutiny(f"secret {number}") for number in range(20)]


def make_pool(problem: Problem, prepared: list[Sizes] | None = None) -> HiddenPool[Sizes]:
    """A pool whose material is the sizes themselves; those that are prepared are noted."""

    def prepare_sizes(sizes: Sizes, seed: int) -> Sizes:
        if prepared is not None:
            prepared.append(sizes)
        return sizes

    return HiddenPool(problem, prepare_sizes)


def choose_sizes(problem: Problem, scrutiny: Scrutiny) -> list[Sizes]:
    return list(make_pool(problem).list_materials(scrutiny))


def test_equal_secrets_have_equal_sizes_and_others_have_others() -> None:
    problem = read_example(RMS_NORM)
    chosen = [choose_sizes(problem, scrutiny) for scrutiny in [*SECRETS, *SECRETS]]
    assert chosen[: len(SECRETS)] == chosen[len(SECRETS) :]
    assert len({str(sizes) for sizes in chosen}) == len(SECRETS)


def test_other_problems_have_other_sizes() -> None:
    problem, renamed = read_example(RMS_NORM), read_example(RMS_NORM, ("eps: 1.0e-5", "eps: 1.0e-4"))
    assert choose_sizes(problem, SECRETS[0]) != choose_sizes(renamed, SECRETS[0])


def choose_full(problem: Problem, number: int) -> list[Sizes]:
    """Those that the full level adds."""
    scrutiny = Scrutiny(f"secret {number}", Level.FULL)
    pool = make_pool(problem)
    return list(pool.list_materials(scrutiny))[len(list(pool.list_materials(SECRETS[number]))) :]


def test_the_cheap_level_draws_tiny_and_aligned_sizes_and_every_dim_above_those_tried() -> None:
    problem = read_example(RMS_NORM)
    for scrutiny in SECRETS:
        chosen = choose_sizes(problem, scrutiny)
        assert len(chosen) >= 4  # of 5 kinds: two may draw the same
        assert any(max(sizes.values()) <= 3 for sizes in chosen)
        assert any(all(size % 8 == 0 or size == 4 for size in sizes.values()) for sizes in chosen)
        assert all(max(sizes[name] for sizes in chosen) > problem.base_sizes[name] for name in ("M", "N"))
        assert all(problem.count_numbers(sizes) <= MOST_NUMBERS for sizes in chosen)
        assert not any(sizes == {"M": 7, "N": 129} for sizes in chosen)


@pytest.mark.parametrize(
    "is_wrong",
    [
        lambda sizes: sizes["N"] % 2 == 0,
        lambda sizes: sizes["N"] % 8 == 0 and sizes["N"] > 200,
        lambda sizes: sizes["M"] % 32 == 0 and sizes["N"] % 32 == 0,
        lambda sizes: sizes["N"] > 2 and sizes["N"] & (sizes["N"] - 1) == 0,
        lambda sizes: sizes["N"] > 11 and all(sizes["N"] % factor for factor in range(2, sizes["N"])),
        lambda sizes: 129 < sizes["N"] < 300,
        lambda sizes: 300 < sizes["N"] <= 316,
        lambda sizes: sizes["N"] > 2100,
        lambda sizes: sizes["N"] > 300 and sizes["M"] <= 8,
        lambda sizes: sizes["N"] > 300 and sizes["M"] == 48,
        lambda sizes: sizes["M"] == sizes["N"] > 3,
        lambda sizes: sizes["M"] == 2,
    ],
)
def test_the_full_level_meets_every_property_of_sizes_whatever_the_secret(is_wrong: Callable[[Sizes], bool]) -> None:
    softmax = read_native_task(load_tasks(["softmax"], "c")[0].text)[0]
    missed = [number for number in range(20) if not any(map(is_wrong, choose_full(softmax, number)))]
    assert not missed


def test_the_full_level_costs_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = read_example(RMS_NORM)
    whole = choose_full(problem, 0)
    monkeypatch.setattr(hidden_sizes, "MOST_WORK", 20_000)
    bounded = choose_full(problem, 0)
    assert 0 < len(bounded) < len(whole)
    assert bounded == whole[: len(bounded)]
    assert sum(problem.count_numbers(sizes) + problem.count_points(sizes) for sizes in bounded) <= 20_000


def test_every_dim_is_whole() -> None:
    problem = read_example(SOFTMAX, ("shape: [M, N], data", "shape: [M, 2, N/2], data"), ("N: 129", "N: 128"))
    for scrutiny in SECRETS:
        chosen = choose_sizes(problem, scrutiny)
        assert len(chosen) >= 4  # two kinds may draw the same
        assert all(has_whole_dims(problem, sizes) for sizes in chosen)


def test_what_is_prepared_at_the_cheap_level_serves_all_programs_of_a_problem() -> None:
    prepared: list[Sizes] = []
    pool = make_pool(read_example(SOFTMAX), prepared)
    for _ in range(20):
        assert len(list(pool.list_materials(SECRETS[0]))) == len(pool.kinds[Level.CHEAP])
    assert len(prepared) == len(pool.kinds[Level.CHEAP])
    cheap = list(prepared)
    assert list(pool.list_materials(Scrutiny(SECRETS[0].secret, Level.FULL)))[: len(cheap)] == cheap


def test_what_stays_prepared_is_bounded_and_made_again_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_sizes, "MOST_PREPARED", 0)
    prepared: list[Sizes] = []
    pool = make_pool(read_example(RMS_NORM), prepared)
    first = list(pool.list_materials(SECRETS[0]))
    assert list(pool.list_materials(SECRETS[0])) == first
    assert prepared == [*first, *first]


def test_sizes_at_which_the_reference_fails_are_drawn_again() -> None:
    data = NativeData(read_example(SOFTMAX, ("torch.softmax(x, -1)", "torch.softmax(x, -1) * (1 // (x.shape[0] > 2))")))
    draws = list(data.draw_hidden(SECRETS[0]))
    assert draws
    assert all(draw.declared.sizes["M"] > 2 for draw in draws)
    assert all(draw.label.startswith("hidden sizes M = ") for draw in draws)
    assert [draw.overrides for draw in draws] == [draw.overrides for draw in data.draw_hidden(SECRETS[0])]


def test_every_bundled_problem_has_sizes_of_every_kind() -> None:
    for task in load_tasks(["kernels", "step26"], "c"):
        pool = make_pool(read_native_task(task.text)[0])
        for level, kinds in pool.kinds.items():
            planned = [member.kind for member, _ in pool.plan_level(Scrutiny("a secret", level))]
            missing = [kind for kind in kinds if kind not in planned and "others at base" not in kind]
            assert len(missing) <= (0 if level is Level.CHEAP else 3), f"{task.id}: {level}: {missing}"


def test_a_symbol_that_only_global_sets_does_not_vary() -> None:
    fixed = {}
    for task in load_tasks(["step26"], "c"):
        problem = read_native_task(task.text)[0]
        if names := problem.symbols - {*list_varying(problem)}:
            fixed[task.id] = names
            assert all(name not in sizes for sizes in choose_sizes(problem, SECRETS[0]) for name in names)
    assert sorted(fixed) == ["etoe_0", "etoe_1", "expert_0", "expert_1", "index_3"]
    assert set(fixed.values()) == {frozenset({"E"})}
