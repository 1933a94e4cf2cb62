"""Hidden sizes belong to a secret, are none that the file states, reach beyond those, and are prepared once a problem."""

import pytest
from problems.examples import RMS_NORM, SOFTMAX, read_example

from opsmith.problems import hidden_sizes
from opsmith.problems.hidden_sizes import GROWTH, MEMBERS, MOST_NUMBERS, HiddenPool, Sizes, list_varying
from opsmith.problems.native import NativeData
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import has_whole_dims
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


def test_every_dim_is_once_larger_than_at_any_stated_set() -> None:
    problem = read_example(RMS_NORM)
    for scrutiny in SECRETS:
        chosen = choose_sizes(problem, scrutiny)
        assert len(chosen) == 5
        assert all(max(sizes[name] for sizes in chosen) >= GROWTH * 512 for name in ("M", "N"))
        assert max(chosen[0].values()) <= 3
        assert all(size % 2 for size in chosen[1].values())
        assert all(problem.count_numbers(sizes) <= MOST_NUMBERS for sizes in chosen)
        assert not any(sizes == {"M": 7, "N": 129} for sizes in chosen)


def test_every_dim_is_whole() -> None:
    problem = read_example(SOFTMAX, ("shape: [M, N], data", "shape: [M, 2, N/2], data"), ("N: 129", "N: 128"))
    for scrutiny in SECRETS:
        chosen = choose_sizes(problem, scrutiny)
        assert len(chosen) == 5
        assert all(has_whole_dims(problem, sizes) for sizes in chosen)


def test_what_is_prepared_serves_all_programs_of_a_problem() -> None:
    prepared: list[Sizes] = []
    pool = make_pool(read_example(SOFTMAX), prepared)
    for _ in range(20):
        assert len(list(pool.list_materials(SECRETS[0]))) == len(pool.kinds)
    assert len(prepared) == len(pool.kinds)
    cheap = list(prepared)
    assert list(pool.list_materials(Scrutiny(SECRETS[0].secret, Level.FULL)))[: len(cheap)] == cheap
    assert len(prepared) == sum(MEMBERS.values()) * len(pool.kinds)


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
        assert len(list(pool.list_materials(SECRETS[0]))) == len(pool.kinds), task.id


def test_a_symbol_that_only_global_sets_does_not_vary() -> None:
    fixed = {}
    for task in load_tasks(["step26"], "c"):
        problem = read_native_task(task.text)[0]
        if names := problem.symbols - {*list_varying(problem)}:
            fixed[task.id] = names
            assert all(name not in sizes for sizes in choose_sizes(problem, SECRETS[0]) for name in names)
    assert sorted(fixed) == ["etoe_0", "etoe_1", "expert_0", "expert_1", "index_3"]
    assert set(fixed.values()) == {frozenset({"E"})}
