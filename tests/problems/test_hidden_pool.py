"""The pool of hidden sizes on its own: attempts, bounds, what is planned, prepared, kept and dropped."""

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from problems.examples import CONVOLUTION, SOFTMAX, read_example

from opsmith.problems import hidden_sizes
from opsmith.problems.hidden_sizes import ATTEMPTS, HiddenMember, HiddenPool
from opsmith.problems.size_kinds import SizeKind, SizeRange, Sizes
from opsmith.records import Level, Scrutiny

CHEAP, FULL = Scrutiny("7"), Scrutiny("7", Level.FULL)
HALVES = read_example(SOFTMAX, ("shape: [M, N], data", "shape: [M, 2, N/2], data"), ("N: 129", "N: 128"))
PROBLEM = read_example(SOFTMAX)


def fix(name: str, m: int, n: int, alone: str = "") -> SizeKind:
    """A kind of one size."""
    return SizeKind(name, {"M": (SizeRange(m, m),), "N": (SizeRange(n, n),)}, alone)


def make_pool(
    cheap: list[SizeKind], full: list[SizeKind], prepare: Callable[[Sizes], Any] = lambda sizes: sizes
) -> tuple[HiddenPool[Any], list[tuple[Sizes, int]]]:
    """A pool of these kinds; what it has prepared, with the seeds."""
    prepared: list[tuple[Sizes, int]] = []

    def note(sizes: Sizes, seed: int) -> Any:
        prepared.append((dict(sizes), seed))
        return prepare(sizes)

    pool = HiddenPool[Any](PROBLEM, note)
    kinds = {Level.CHEAP: cheap, Level.FULL: full}
    pool.__dict__["kinds"] = {level: {kind.name: kind for kind in rows} for level, rows in kinds.items()}
    return pool, prepared


def test_attempts_shrink_within_each_half_and_are_whole_in_the_second() -> None:
    shrinks: list[float] = []

    def draw_sizes(source: random.Random, shrink: float) -> dict[str, int]:
        shrinks.append(shrink)
        return {"M": 3, "N": 5}

    pool = HiddenPool[Any](HALVES, lambda sizes, seed: sizes)
    kind = cast(SizeKind, SimpleNamespace(alone="", draw_sizes=draw_sizes))
    drawn = [pool._attempt_draw(kind, random.Random(1), attempt) for attempt in range(ATTEMPTS)]
    half = ATTEMPTS // 2
    assert shrinks == pytest.approx([1 - place / half for place in range(half)] * 2)
    assert drawn == [None] * half + [{"M": 3, "N": 6}] * half, "5/2 is no size"
    none = cast(SizeKind, SimpleNamespace(alone="", draw_sizes=lambda source, shrink: None))
    assert [pool._attempt_draw(none, random.Random(1), attempt) for attempt in (0, half)] == [None, None]


def test_what_every_symbol_is_divided_by_counts_together() -> None:
    thirds = read_example(
        SOFTMAX, ("shape: [M, N], data", "shape: [M, N/2, 2*N/3, 3], data"), ("N: 40", "N: 36"), ("N: 129", "N: 126")
    )
    assert HiddenPool[Any](thirds, lambda sizes, seed: sizes)._quanta == {"M": 1, "N": 6}
    assert HiddenPool[Any](PROBLEM, lambda sizes, seed: sizes)._quanta == {"M": 1, "N": 1}


def test_a_draw_may_cost_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = HiddenPool[Any](PROBLEM, lambda sizes, seed: sizes)
    sizes = {"M": 5, "N": 10}
    assert pool.problem.count_numbers(sizes) == 100
    assert pool.complete_sizes(sizes, 100) == sizes
    assert pool.complete_sizes(sizes, 99) is None
    points = pool.problem.count_points(sizes)
    monkeypatch.setattr(hidden_sizes, "MOST_POINTS", points)
    assert pool.complete_sizes(sizes) == sizes
    monkeypatch.setattr(hidden_sizes, "MOST_POINTS", points - 1)
    assert pool.complete_sizes(sizes) is None


def test_kinds_of_one_symbol_may_cost_more_than_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_sizes, "MOST_SIMPLE_NUMBERS", 99)
    monkeypatch.setattr(hidden_sizes, "MOST_NUMBERS", 100)
    pool = HiddenPool[Any](PROBLEM, lambda sizes, seed: sizes)
    draws = [pool._attempt_draw(fix("k", 5, 10, alone), random.Random(1), 0) for alone in ("", "N")]
    assert draws == [None, {"M": 5, "N": 10}]


def test_what_follows_by_constraints_follows_and_what_breaks_them_is_none() -> None:
    pool = HiddenPool[Any](read_example(CONVOLUTION), lambda sizes, seed: sizes)
    assert pool.complete_sizes({"C": 2, "O": 3, "H": 11, "H_out": 1}) == {"C": 2, "O": 3, "H": 11, "H_out": 6}
    loops = pool._count_points({"C": 2, "O": 3, "H": 11, "H_out": 6})
    assert loops == pool._count_points({"C": 2, "O": 3, "H": 11, "H_out": 99}), "what follows is no loop"
    assert loops == pool.problem.count_points({"C": 2, "O": 3, "H": 11, "H_out": 1})


def test_the_cheapest_are_planned_first_and_the_dearest_left_out_of_the_full_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = [fix("large", 9, 50), fix("small", 2, 3), fix("middle", 4, 10)]
    pool, _ = make_pool(kinds, kinds)
    work = {kind.name: pool._count_work({name: rows[0].low for name, rows in kind.ranges.items()}) for kind in kinds}
    assert work["small"] == 2 * 2 * 3 + 2 * 3
    monkeypatch.setattr(hidden_sizes, "MOST_WORK", work["small"] + work["middle"])
    assert [member.kind for member, _ in pool.plan_level(CHEAP)] == ["small", "middle", "large"], "without a bound"
    assert [member.kind for member, _ in pool.plan_level(FULL)] == ["small", "middle"]
    assert pool.plan_level(FULL) is pool.plan_level(FULL)
    monkeypatch.setattr(hidden_sizes, "MOST_WORK", work["small"] + work["middle"] - 1)
    assert [member.kind for member, _ in make_pool(kinds, kinds)[0].plan_level(FULL)] == ["small"]


def test_stated_sizes_and_what_cannot_be_drawn_are_no_members() -> None:
    none = SizeKind("none", {"M": (SizeRange(24, 28, form="prime"),), "N": (SizeRange(1, 1),)})
    pool, prepared = make_pool([fix("base", 6, 40), fix("odd", 3, 129), none, fix("own", 3, 40)], [])
    assert list(pool.list_materials(CHEAP)) == [{"M": 3, "N": 40}]
    assert [sizes for sizes, _ in prepared] == [{"M": 3, "N": 40}]


def test_equal_sizes_of_several_kinds_are_tried_once() -> None:
    pool, prepared = make_pool([fix("a", 2, 3), fix("b", 2, 3)], [fix("c", 2, 3), fix("d", 4, 5)])
    assert list(pool.list_materials(FULL)) == [{"M": 2, "N": 3}, {"M": 4, "N": 5}]
    assert len(prepared) == 2


def test_what_cannot_be_prepared_is_drawn_again_and_then_given_up() -> None:
    wide = SizeKind("wide", {"M": (SizeRange(1, 4),), "N": (SizeRange(1, 4),)})
    pool, prepared = make_pool([wide, fix("fine", 9, 9)], [], lambda sizes: sizes if sizes["M"] == 9 else None)
    assert list(pool.list_materials(CHEAP)) == [{"M": 9, "N": 9}]
    assert len(prepared) > 8
    assert len({str(sizes) for sizes, _ in prepared}) > 4
    before = len(prepared)
    assert list(pool.list_materials(CHEAP)) == [{"M": 9, "N": 9}]
    assert len(prepared) == before, "it is known that there is no such member"
    pool, prepared = make_pool([wide], [], lambda sizes: sizes if sizes["M"] > 2 else None)
    (first,) = pool.list_materials(CHEAP)
    assert first == prepared[-1][0]
    assert list(pool.list_materials(CHEAP)) == [first]


def test_two_kinds_that_end_at_the_same_sizes_give_them_once() -> None:
    """The first draw of one cannot be prepared, and its next one is what another has."""
    wide = SizeKind("wide", {"M": (SizeRange(1, 2),), "N": (SizeRange(3, 3),)})
    pool, _ = make_pool([wide, fix("same", 2, 3)], [], lambda sizes: sizes if sizes["M"] == 2 else None)
    assert list(pool.list_materials(CHEAP)) == [{"M": 2, "N": 3}]


def test_the_cheap_level_stays_prepared_and_the_full_one_does_not() -> None:
    pool, prepared = make_pool([fix("a", 2, 3)], [fix("b", 4, 5)])
    for _ in range(3):
        assert len(list(pool.list_materials(FULL))) == 2
    assert [sizes["M"] for sizes, _ in prepared] == [2, 4, 4, 4]
    assert list(pool._prepared) == [HiddenMember(CHEAP, "a")]
    assert len({seed for sizes, seed in prepared if sizes["M"] == 4}) == 1, "the same data"
    assert len({seed for _, seed in prepared}) == 2


@pytest.mark.parametrize(("most", "times"), [(48, 2), (47, 3), (36, 3), (11, 3), (0, 3)])
def test_as_many_numbers_stay_prepared_as_may(most: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 and of 36 numbers: those used last stay, and the last one whatever its size."""
    monkeypatch.setattr(hidden_sizes, "MOST_PREPARED", most)
    pool, prepared = make_pool([fix("a", 2, 3), fix("b", 3, 6)], [])
    for _ in range(2):
        list(pool.list_materials(CHEAP))
    kept = [member.kind for member in pool._prepared]
    assert kept == (["a", "b"] if times == 2 else ["b"])
    assert len(prepared) == (2 if times == 2 else 4)
    assert pool._numbers == {HiddenMember(CHEAP, "a"): 12, HiddenMember(CHEAP, "b"): 36}
