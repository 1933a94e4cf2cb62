"""How many rounds a run takes, by those that are stored."""

from opsmith.records import Usage
from opsmith.results.precedents import Precedent, describe_basis, expect_rest, guess_rounds
from opsmith.store.rows import RoundInfo


def _round(number: int, tasks: int, planned: int) -> RoundInfo:
    return RoundInfo(number, 0, "none", (), tuple(f"t_{n}" for n in range(tasks)), planned)


def test_a_guess_ends_when_no_level_brings_anything_new():
    guess = guess_rounds(levels=3, optimise=2)
    assert guess.list_rounds(26, None) == [(26, 0), (13, 13), (6, 6), (6, 13), (6, 20)]
    assert guess.list_rounds(26, 2) == [(26, 0), (13, 13)], "a limit of rounds holds"
    assert guess.improved == 1.5
    assert "a guess" in describe_basis(())


def test_what_is_left_costs_what_samples_so_far_did():
    earlier = (Precedent("a", "m", (1, 0.5, 0.5), (0, 0.5, 0.5)), Precedent("b", "m", (1, 0.5), (0, 0.5)))
    rounds, spent = [_round(0, 8, 32), _round(1, 4, 16)], Usage(40, 4000, 800, cost_usd=2.0)
    rest = expect_rest(earlier, rounds, judged=40, spent=spent, limit=None)
    assert rest is not None
    assert rest.samples == 8 + 4 * 4 // 2, "of this round, and of the third round that one of both runs took"
    assert rest.usage == spent.scale(16 / 40)
    assert rest.basis == "as many rounds as finished runs like it took (a, b)"
    assert expect_rest(earlier, rounds, judged=0, spent=spent, limit=None) is None
