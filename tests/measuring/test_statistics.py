"""Statistics of measuring: intervals contain the truth, combine as they should, and claims follow one table."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.measuring.claims import LEAST_GAIN, Claim, explain_refusal, judge_ratio
from opsmith.measuring.intervals import Interval, average_ratios, chain_ratios
from opsmith.measuring.measure import estimate_ratio
from opsmith.measuring.pairs import (
    compare_times,
    estimate_median,
)
from opsmith.timing.engine import PairTimes


def draw_ratios(truth: float, processes: int, pairs: int, between: float, seed: int) -> list[list[float]]:
    """As this field's noise is: most pairs within 1 %, one in ten hit by something, processes apart by `between`."""
    generator = np.random.default_rng(seed)
    logs = generator.laplace(0, 0.01, (processes, pairs)) + generator.normal(0, between, (processes, 1))
    logs += (generator.random((processes, pairs)) < 0.1) * generator.normal(0, 0.5, (processes, pairs))
    rows: list[list[float]] = (truth * np.exp(logs)).tolist()
    return rows


@pytest.mark.parametrize(("processes", "pairs", "between"), [(1, 20, 0.0), (3, 34, 0.01), (5, 20, 0.01)])
@pytest.mark.parametrize("truth", [1.0, 1.2])
def test_nine_in_ten_intervals_contain_the_true_ratio(processes: int, pairs: int, between: float, truth: float) -> None:
    intervals = [
        estimate_median(draw_ratios(truth, processes, pairs, between, seed), resamples=400) for seed in range(60)
    ]
    assert sum(interval.contains(truth) for interval in intervals) >= 54


@pytest.mark.parametrize(("pairs", "low", "high"), [(13, 3, 9), (17, 4, 12)])
def test_the_interval_of_one_process_ends_where_the_median_lies_in_two_and_a_half_of_a_hundred_draws(
    pairs: int, low: int, high: int
) -> None:
    """By the binomial distribution: of 17 figures the fifth is at or above the median of 3.6 % of all draws."""
    ratios = [0.25 * 1.5**place + place for place in range(pairs)]  # skewed, so that its sides differ
    interval = estimate_median([ratios])
    assert (interval.low, interval.value, interval.high) == pytest.approx(
        (ratios[low], ratios[pairs // 2], ratios[high])
    )


@pytest.mark.parametrize("processes", range(1, 13))
def test_few_processes_are_widened_as_students_distribution_is(processes: int) -> None:
    """Where every process has one ratio of two, the ends are the ratios themselves, farther from the median."""
    rows = [[0.8 if number % 2 else 1.25] * 20 for number in range(processes)]
    interval = estimate_median(rows)
    factor = math.log(interval.low / interval.value) / math.log(0.8 / interval.value) if processes > 1 else 1.0
    freedom = processes - 1
    if not 0 < freedom < 10:
        assert factor == pytest.approx(1.0)
        return
    steps = np.tan(np.linspace(0.0, math.atan(1.959964 * factor / math.sqrt(freedom)), 4001))  # in Student's own scale
    weights = (1 + steps**2) ** (-(freedom + 1) / 2)
    share = float(np.sum((weights[1:] + weights[:-1]) / 2 * np.diff(steps)))
    whole = math.sqrt(math.pi) * math.gamma(freedom / 2) / math.gamma((freedom + 1) / 2)
    assert 2 * share / whole == pytest.approx(0.95, abs=1e-5)


def test_what_is_redrawn_of_a_process_is_its_own() -> None:
    interval = estimate_median([[0.8] * 10, [1.25] * 30])
    assert interval.value == 1.25
    assert interval.low < 0.8


def test_of_each_process_as_many_figures_are_redrawn_as_the_shortest_has() -> None:
    ratios = [0.8, 0.9, 0.95, 0.98, 1.0, 1.01, 1.05, 1.2, 1.3]
    equal, unequal = estimate_median([ratios, ratios]), estimate_median([ratios, ratios * 40])
    assert math.log(unequal.high / unequal.low) == pytest.approx(math.log(equal.high / equal.low), rel=0.15)


def test_more_pairs_make_a_narrower_interval_and_a_difference_shows() -> None:
    few, many = (estimate_median(draw_ratios(1.05, 1, pairs, 0.0, 7)) for pairs in (20, 500))
    assert many.high - many.low < few.high - few.low
    assert many.low > 1.03


def test_an_interval_is_the_same_for_the_same_seed_only() -> None:
    ratios = draw_ratios(1.0, 3, 10, 0.01, 1)
    assert estimate_median(ratios, seed=3) == estimate_median(ratios, seed=3)
    assert estimate_median(ratios, seed=3) != estimate_median(ratios, seed=4)


def test_a_burst_moves_the_mean_and_not_the_median() -> None:
    ratios = [1.0] * 18 + [700.0] * 2
    assert estimate_median([ratios]).value == 1.0
    assert np.mean(ratios) > 70


def test_the_other_side_of_a_pair_has_the_reciprocal_ratio() -> None:
    ratios = draw_ratios(1.5, 1, 21, 0.0, 2)
    ours, theirs = estimate_median(ratios), estimate_median([[1 / ratio for ratio in ratios[0]]])
    assert theirs.value == pytest.approx(ours.invert().value)
    assert theirs.low == pytest.approx(ours.invert().low, rel=5e-3)


@pytest.mark.parametrize("processes", [[], [[]], [[1.0, 0.0]], [[1.0], [-1.0]], [[math.nan]], [[math.inf]]])
@pytest.mark.filterwarnings("ignore:.*encountered in log")
def test_what_is_no_positive_figure_has_no_median(processes: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="expected positive figures"):
        estimate_median(processes)


def test_a_ratio_is_the_partners_time_by_the_programs() -> None:
    assert compare_times([1e-6, 0.5], [4e-6, 0.25]) == [4.0, 0.5]


@pytest.mark.parametrize(("times", "partners"), [([1.0], []), ([0.0], [1.0]), ([1.0], [math.inf])])
def test_times_without_a_pair_are_refused(times: list[float], partners: list[float]) -> None:
    with pytest.raises(ValueError, match="expected pairs"):
        compare_times(times, partners)


def test_a_chain_is_as_uncertain_as_its_parts_together() -> None:
    first, second = Interval(2.0, 1.9, 2.2), Interval(0.5, 0.4, 0.6)
    chained = chain_ratios(first, second)
    assert chained.value == pytest.approx(1.0)
    assert math.log(1 / chained.low) == pytest.approx(math.hypot(math.log(2 / 1.9), math.log(0.5 / 0.4)))
    assert chain_ratios(first, first.invert()).contains(1.0)


def test_an_interval_holds_its_ends_and_grows_by_a_share_on_both_sides() -> None:
    interval = Interval(2.0, 1.6, 2.5)
    assert [interval.contains(figure) for figure in (1.59, 1.6, 2.5, 2.51)] == [False, True, True, False]
    wider = interval.widen_by(0.25)
    assert (wider.value, wider.low, wider.high) == pytest.approx((2.0, 1.28, 3.125))


def test_a_refusal_says_what_both_clocks_say() -> None:
    words = explain_refusal(Interval(3.0, 2.9, 3.1), Interval(1.0, 0.96, 1.04))
    assert "own clock says 3.000 [2.900, 3.100]" in words
    assert "outside it 1.000 [0.960, 1.040]" in words


def test_what_is_counted_is_shown_without_an_interval() -> None:
    assert str(Interval(5.2, 5.2, 5.2)) == "5.200"
    assert str(Interval(5.2, 5.1, 5.3)) == "5.200 [5.100, 5.300]"


def test_the_mean_of_many_ratios_is_more_certain_than_each() -> None:
    one = Interval(2.0, 1.8, 2.2)
    mean = average_ratios([one] * 16)
    assert mean is not None
    assert mean.value == pytest.approx(2.0)
    assert math.log(mean.value / mean.low) == pytest.approx(math.log(2.0 / 1.8) / 4)
    assert average_ratios([]) is None


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.floats(1, 2))
def test_a_mean_lies_between_its_ratios(values: list[float], spread: float) -> None:
    mean = average_ratios([Interval(value, value / spread, value * spread) for value in values])
    assert mean is not None
    assert min(values) * 0.999999 <= mean.value <= max(values) * 1.000001


@pytest.mark.parametrize(
    "figures", [(1.0, 2.0, 3.0), (1.0, 0.5, 0.9), (1.0, 0.0, 2.0), (math.nan, 1.0, 1.0), (1.0, 1.0, math.inf)]
)
def test_an_interval_holds_positive_figures_in_order(figures: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="Interval"):
        Interval(*figures)


@pytest.mark.parametrize(
    ("precise", "trusted", "claim"),
    [
        ((1.00, 0.99, 1.01), (1.00, 0.98, 1.02), Claim.NO_DIFFERENCE),
        ((1.10, 1.03, 1.20), (1.10, 1.05, 1.15), Claim.NO_DIFFERENCE),  # the bound itself
        ((1.10, 1.031, 1.20), (1.10, 1.05, 1.15), Claim.FASTER),
        ((22.7, 22.0, 23.0), (19.7, 16.4, 22.1), Claim.FASTER),  # the intervals overlap, the figures do not lie in them
        ((1.05, 1.04, 1.06), (1.02, 0.98, 1.06), Claim.IN_PROCESS),
        ((1.05, 1.04, 1.06), (1.05, 1.03, 1.06), Claim.IN_PROCESS),  # the bound itself
        ((3.00, 2.90, 3.10), (1.00, 0.96, 1.04), Claim.REFUSED),  # a forged clock
        ((1.20, 1.10, 1.30), (1.00, 0.90, 1.10), Claim.IN_PROCESS),  # one that touches ours is no claim either
        ((1.00, 0.90, 1.10), (1.20, 1.10, 1.30), Claim.NO_DIFFERENCE),  # nor a contradiction
        ((1.50, 1.40, 1.60), (2.00, 1.80, 2.20), Claim.REFUSED),  # too slow is a contradiction as well
        ((1.00, 0.99, 1.01), (1.20, 1.10, 1.30), Claim.REFUSED),
        ((0.50, 0.49, 0.51), (0.50, 0.45, 0.55), Claim.SLOWER),
        ((0.50, 0.49, 0.51), (1.00, 0.95, 1.05), Claim.REFUSED),
        ((0.96, 0.94, 0.98), (0.96, 0.90, 1.00), Claim.NO_DIFFERENCE),
        ((0.96, 0.94, 1 / LEAST_GAIN), (0.96, 0.90, 1.00), Claim.NO_DIFFERENCE),  # the bound itself
    ],
)
def test_a_claim_needs_both_clocks(
    precise: tuple[float, float, float], trusted: tuple[float, float, float], claim: Claim
) -> None:
    assert judge_ratio(Interval(*precise), Interval(*trusted)) is claim


def draw_claims(truth: float, forged: float) -> Counter[Claim]:
    """Of 40 measurements, where the program's own clock makes it so many times as fast as it is."""
    claims: Counter[Claim] = Counter()
    for seed in range(40):
        precise = estimate_median(draw_ratios(truth * forged, 5, 20, 0.003, seed), resamples=400)
        trusted = estimate_median(draw_ratios(truth, 5, 20, 0.02, 1000 + seed), resamples=400)
        claims[judge_ratio(precise, trusted)] += 1
    return claims


@pytest.mark.parametrize("forged", [1.0, 1.2, 3.0])
def test_noise_and_a_forged_clock_are_never_claimed_as_faster(forged: float) -> None:
    assert draw_claims(1.0, forged)[Claim.FASTER] == 0


def test_a_faster_program_is_claimed_as_such() -> None:
    claims = draw_claims(1.5, 1.0)
    assert claims[Claim.FASTER] >= 36, "the trusted interval misses one in twenty"
    assert set(claims) <= {Claim.FASTER, Claim.REFUSED}


def test_what_a_turn_costs_makes_the_trusted_interval_of_fast_programs_wider_and_that_of_equal_ones_not() -> None:
    partner, fast = (400.0, 404.0, 396.0), (10.0, 10.1, 9.9)
    plain, wary = (estimate_ratio([PairTimes(fast, partner, 1, error)] * 5, 0.03) for error in (0.0, 0.12))
    assert plain is not None
    assert wary is not None
    assert (plain.contains(44.0), wary.contains(44.0), wary.contains(60.0)) == (False, True, False)
    assert judge_ratio(Interval(44.0, 43.5, 44.5), wary) is Claim.FASTER
    assert judge_ratio(Interval(3.0, 2.9, 3.1), Interval(1.0, 0.95, 1.05)) is Claim.REFUSED
