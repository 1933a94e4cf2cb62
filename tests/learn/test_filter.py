from collections import Counter

import pytest
from tiny_target import TINY

from opsmith.learn.filter import choose_answer, pure_code
from opsmith.results.counting import success_rate
from opsmith.store.queries import Answer, Tally


def answers(*sources: str) -> list[Answer]:
    return [Answer("t", 0.7, number, f"s{number}", source) for number, source in enumerate(sources)]


def test_the_shortest_in_pure_code_is_kept() -> None:
    found = answers("x y + z +", "x y +", "\\ a long comment\n\n   y x + \\ and another")
    assert choose_answer(found, TINY.canonical_form, 0, "\\").source in (
        "x y +",
        "\\ a long comment\n\n   y x + \\ and another",
    )
    assert choose_answer(found[:2], TINY.canonical_form, 0, "\\").source == "x y +"


def test_comments_and_empty_lines_are_no_code_but_a_mark_in_quotes_is() -> None:
    assert pure_code("a = 1  # one\n\n   # two\n b = '#'\n") == "a = 1\nb = '#'"


def test_of_isomorphic_answers_one_is_drawn_whatever_the_order() -> None:
    long = answers("copy x left right\nleft right *", "copy x a b\na b *", "copy x c d\nc d *")
    drawn = [choose_answer(long, TINY.canonical_form, seed).source for seed in range(300)]
    assert [choose_answer(long[::-1], TINY.canonical_form, seed).source for seed in range(300)] == drawn
    assert all(60 < count < 140 for count in Counter(drawn).values()), "every answer has about the same chance"


def test_the_success_rate_is_the_best_over_temperatures_of_what_was_judged() -> None:
    tallies = [Tally(0, "t", 0.4, 1, 8), Tally(0, "t", 1.0, 3, 4), Tally(0, "t", 0.7, 0, 0)]
    assert success_rate(tallies) == pytest.approx(0.75)
    assert success_rate([]) == 0.0
