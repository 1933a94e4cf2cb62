"""Kinds of hidden sizes by their figures: which sizes a range gives, which ranges a kind gives each symbol."""

import random
from itertools import pairwise

import pytest
from problems.examples import CONVOLUTION, RMS_NORM, SOFTMAX, read_example

from opsmith.problems.size_kinds import SizeKind, SizeRange, list_kinds
from opsmith.records import Level

Ranges = list[tuple[int, int, int, str]]
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]


@pytest.mark.parametrize(
    ("range_", "sizes"),
    [
        (SizeRange(5, 9), [5, 6, 7, 8, 9]),
        (SizeRange(6, 6), [6]),
        (SizeRange(10, 40, 8), [16, 24, 32, 40]),
        (SizeRange(16, 47, 16), [16, 32]),
        (SizeRange(17, 31, 32), []),
        (SizeRange(3, 9, form="odd"), [3, 5, 7, 9]),
        (SizeRange(4, 10, form="odd"), [5, 7, 9]),
        (SizeRange(4, 4, form="odd"), []),
        (SizeRange(2, 37, form="prime"), PRIMES),
        (SizeRange(4, 36, form="prime"), PRIMES[2:-1]),
        (SizeRange(24, 28, form="prime"), []),
        (SizeRange(5, 40, form="power"), [8, 16, 32]),
        (SizeRange(4, 64, form="power"), [4, 8, 16, 32, 64]),
        (SizeRange(33, 63, form="power"), []),
    ],
)
def test_a_range_gives_all_of_its_sizes_and_no_other(range_: SizeRange, sizes: list[int]) -> None:
    source = random.Random(7)
    drawn = {range_.draw_size(source, range_.high) for _ in range(600)} - {None}
    assert drawn == set(sizes)
    assert [size for size in range(1, 80) if range_.holds_size(size)] == sizes


def test_every_order_of_magnitude_is_as_likely() -> None:
    source = random.Random(7)
    drawn = [SizeRange(1, 1023).draw_size(source, 1023) or 0 for _ in range(2000)]
    assert [sum(low <= size < 4 * low for size in drawn) for low in (1, 4, 16, 64, 256)] == pytest.approx(
        [400] * 5, rel=0.15
    )


@pytest.mark.parametrize(
    ("range_", "most", "sizes"),
    [
        (SizeRange(4, 100), 6, {4, 5, 6}),
        (SizeRange(4, 100), 1, {4}),
        (SizeRange(7, 50, form="prime"), 12, {7, 11}),
        (SizeRange(8, 50, form="prime"), 1, {11}),
        (SizeRange(9, 100, 8), 1, {16}),
        (SizeRange(5, 100, form="power"), 17, {8, 16}),
        (SizeRange(4, 100, form="odd"), 4, {5}),
    ],
)
def test_a_range_can_be_cut_down_to_its_least_size(range_: SizeRange, most: int, sizes: set[int]) -> None:
    source = random.Random(7)
    assert {range_.draw_size(source, most) for _ in range(200)} == sizes


def draw_all(kind: SizeKind, shrink: float) -> list[dict[str, int]]:
    source = random.Random(7)
    return [sizes for _ in range(300) if (sizes := kind.draw_sizes(source, shrink)) is not None]


def test_a_kind_gives_every_symbol_a_size_out_of_one_of_its_ranges() -> None:
    both = SizeKind("two", {"M": (SizeRange(1, 2), SizeRange(50, 51)), "N": (SizeRange(10, 20),)})
    drawn = draw_all(both, 1.0)
    assert {sizes["M"] for sizes in drawn} == {1, 2, 50, 51}
    assert {sizes["N"] for sizes in drawn} == set(range(10, 21))
    assert {sizes["N"] for sizes in draw_all(both, 0.6)} == {10, 11, 12}
    assert both.holds_size("M", 50)
    assert not both.holds_size("N", 50)
    alone = SizeKind("one", both.ranges, "N")
    assert max(sizes["N"] for sizes in draw_all(alone, 0.1)) == 20
    assert max(sizes["M"] for sizes in draw_all(alone, 0.1)) == 50, "the least of a range"
    assert SizeKind("none", {"M": (SizeRange(24, 28, form="prime"),)}).draw_sizes(random.Random(1), 1.0) is None


def test_equal_sizes_are_equal_and_shrink() -> None:
    kind = SizeKind("equal", dict.fromkeys("MN", (SizeRange(4, 10), SizeRange(32, 64, 32))), equal=True)
    drawn = draw_all(kind, 1.0)
    assert all(sizes["M"] == sizes["N"] for sizes in drawn)
    assert {sizes["M"] for sizes in drawn} == {4, 5, 6, 7, 8, 9, 10, 32, 64}
    assert {sizes["M"] for sizes in draw_all(kind, 0.5)} == {4, 5, 32}
    none = SizeKind("none", dict.fromkeys("MN", (SizeRange(24, 28, form="prime"),)), equal=True)
    assert none.draw_sizes(random.Random(1), 1.0) is None


def list_ranges(text: str, level: Level) -> dict[str, dict[str, Ranges]]:
    kinds = list_kinds(read_example(text), level)
    return {
        kind.name: {
            name: [(range_.low, range_.high, range_.step, range_.form) for range_ in ranges]
            for name, ranges in kind.ranges.items()
        }
        for kind in kinds
    }


TINY = [(1, 3, 1, "")]
SMALL = [(1, 8, 1, "")]
ODD, PRIME, POWER = [(3, 67, 1, "odd")], [(2, 67, 1, "prime")], [(4, 128, 1, "power")]
EIGHT, SIXTEEN, THIRTY_TWO = [(8, 128, 8, "")], [(16, 128, 16, "")], [(32, 128, 32, "")]
EVEN = [(2, 67, 2, "")]
ALIGNED = [*EIGHT, *SIXTEEN, *THIRTY_TWO, *POWER]
GAPS = {"M": [(1, 2, 1, ""), (4, 5, 1, "")], "N": [(1, 39, 1, ""), (41, 128, 1, "")]}
ABOVE_M = [(7, 8, 1, ""), (9, 22, 1, ""), (8, 32, 1, "")]
ABOVE_N = [(130, 131, 1, ""), (132, 145, 1, ""), (146, 167, 1, ""), (168, 258, 1, "")]


def test_the_cheap_level_of_a_problem_of_two_symbols() -> None:
    """M: 6 and 3, N: 40 and 129; nothing else is timed."""
    assert list_ranges(SOFTMAX, Level.CHEAP) == {
        "tiny": {"M": TINY, "N": TINY},
        "odd or between": {name: [*ODD, *PRIME, *GAPS[name]] for name in "MN"},
        "aligned": {"M": ALIGNED, "N": ALIGNED},
        "above M": {"M": [*ABOVE_M, (8, 32, 32, "")], "N": SMALL},
        "above N": {"M": SMALL, "N": [*ABOVE_N, (168, 258, 32, "")]},
    }


def test_the_full_level_gives_both_symbols_every_form_each_beside_another() -> None:
    ranges = list_ranges(SOFTMAX, Level.FULL)
    assert {name: row for name, row in ranges.items() if name.startswith("mixed")} == {
        "mixed from tiny": {"M": TINY, "N": PRIME},
        "mixed from odd": {"M": ODD, "N": SIXTEEN},
        "mixed from thirty-two": {"M": THIRTY_TWO, "N": EVEN},
        "mixed from prime": {"M": PRIME, "N": POWER},
        "mixed from sixteen": {"M": SIXTEEN, "N": EIGHT},
        "mixed from even": {"M": EVEN, "N": TINY},
        "mixed from power": {"M": POWER, "N": ODD},
        "mixed from eight": {"M": EIGHT, "N": THIRTY_TWO},
    }
    assert ranges["equal"] == {name: [(4, 67, 1, ""), *ALIGNED] for name in "MN"}
    assert ranges["between all, draw 0"] == ranges["between all, draw 1"] == GAPS
    assert ranges["tiles of M and N"] == {"M": THIRTY_TWO, "N": THIRTY_TWO}
    assert "between all, draw 2" not in ranges


def test_the_full_level_gives_each_symbol_alone_every_property() -> None:
    ranges = list_ranges(SOFTMAX, Level.FULL)
    alone = {name: row["N"] for name, row in ranges.items() if "N" in name and "step" not in name and "M" not in name}
    assert alone == {
        "above N, part 0": ABOVE_N[:1],
        "above N, part 1": ABOVE_N[1:2],
        "odd N": [(3, 258, 1, "odd")],
        "thirty-two N": [(32, 258, 32, "")],
        "prime N": [(2, 258, 1, "prime")],
        "sixteen N": [(16, 258, 16, "")],
        "even N": [(2, 258, 2, "")],
        "power N": [(4, 258, 1, "power")],
        "eight N": [(8, 258, 8, "")],
        "between N, others at base": GAPS["N"],
        "above N, others at base": ABOVE_N,
        "aligned N, others at base": [(8, 258, 8, ""), (16, 258, 16, ""), (32, 258, 32, ""), (4, 258, 1, "power")],
    }
    for name, row in ranges.items():
        if name in alone:
            assert row["M"] == ([(6, 6, 1, "")] if "base" in name else SMALL)
    kinds = {kind.name: kind for kind in list_kinds(read_example(SOFTMAX), Level.FULL)}
    assert {kinds[name].alone for name in alone} == {"N"}
    assert [name for name, kind in kinds.items() if kind.equal] == ["equal"]
    assert {kind.alone for name, kind in kinds.items() if name.startswith(("mixed", "between all", "tiles"))} == {""}


def list_steps(text: str, symbol: str) -> list[tuple[int, int]]:
    rows = list_ranges(text, Level.FULL)
    return [
        row[symbol][0][:2] for name, row in rows.items() if name.startswith("step") and name.endswith(f"of {symbol}")
    ]


def test_the_magnitudes_of_one_symbol_are_covered_without_a_gap() -> None:
    steps = list_steps(SOFTMAX, "N")
    assert (steps[0][0], steps[-1][1], len(steps)) == (9, 258, 32)
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(steps))
    assert sum(high <= 129 for _, high in steps) == 24, "three of four up to the largest that is tried"
    assert steps[23] == (116, 129)
    assert steps[10:14] == [(27, 29), (30, 33), (34, 37), (38, 41)]
    assert steps[24:27] == [(130, 141), (142, 154), (155, 168)]
    few = list_steps(SOFTMAX, "M")
    assert (few[0][0], few[-1][1], len(few)) == (9, 32, 16), "from 8 on, whatever is tried"
    assert list_steps(RMS_NORM, "N")[22:25] == [(223, 258), (259, 300), (301, 382)]


def test_sizes_that_are_timed_lie_below_what_is_drawn_beyond() -> None:
    """M: 8 and 7, up to 512 when timed; N: 300 and 129, up to 1024."""
    ranges = list_ranges(RMS_NORM, Level.CHEAP)
    assert ranges["above M"]["M"] == [
        (9, 10, 1, ""),
        (11, 24, 1, ""),
        (25, 665, 1, ""),
        (666, 1024, 1, ""),
        (666, 1024, 32, ""),
    ]
    assert ranges["above N"]["N"] == [
        (301, 302, 1, ""),
        (303, 316, 1, ""),
        (317, 324, 1, ""),
        (325, 1331, 1, ""),
        (1332, 2048, 1, ""),
        (1332, 2048, 32, ""),
    ]
    between = list_ranges(RMS_NORM, Level.FULL)["between all, draw 0"]
    assert between == {"M": [(1, 6, 1, "")], "N": [(1, 128, 1, ""), (130, 299, 1, "")]}


def test_of_many_gaps_the_widest_are_drawn_from_and_without_one_small_sizes() -> None:
    shapes = "shapes: {a: {M: 1, N: 2}, b: {M: 2, N: 8}, c: {M: 3, N: 32}, d: {M: 4, N: 36}, e: {M: 5, N: 200}, f: {M: 6, N: 202}}"
    text = SOFTMAX.replace("shapes: {odd: {M: 3, N: 129}}", shapes)
    ranges = list_ranges(text, Level.FULL)["between all, draw 0"]
    assert ranges["M"] == SMALL
    assert ranges["N"] == [(1, 1, 1, ""), (3, 7, 1, ""), (9, 31, 1, ""), (41, 199, 1, "")]


def test_sizes_are_rounded_up_where_a_share_of_a_stated_one_is_none() -> None:
    """M: 203, of which 1.08 are 219.24, 1.3 are 263.9; and a symbol that is largest when it is timed at 2047."""
    text = SOFTMAX.replace("M: 6", "M: 203") + "bench: {small: {N: 1}, odd: {N: 3}, large: {N: 2047}}\n"
    ranges = list_ranges(text, Level.CHEAP)
    edges = [(low, high) for low, high, step, _ in ranges["above M"]["M"] if step == 1]
    assert edges == [(204, 205), (206, 219), (220, 220), (221, 263), (264, 406)]
    assert ranges["above N"]["N"][-1] == (2662, 4094, 32, "")


def test_what_follows_from_another_symbol_is_never_drawn_alone() -> None:
    ranges = list_ranges(CONVOLUTION, Level.CHEAP)
    assert [name for name in ranges if name.startswith("above")] == ["above C", "above O", "above H"]
    assert list(ranges["tiny"]) == ["C", "O", "H", "H_out"]


def test_a_problem_without_symbols_has_no_kinds() -> None:
    text = SOFTMAX.replace("shapes: {odd: {M: 3, N: 129}}", "").replace("[M, N]", "[6, 40]")
    assert list_kinds(read_example(text.replace("dims: {M: 6, N: 40}", "dims: {}")), Level.CHEAP) == []
