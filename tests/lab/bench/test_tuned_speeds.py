"""The table of an optimisation pass: what is compared with what, what counts as a gain, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.bench.test_kernel_speeds import REPORT, TORCH
from opsmith.devices.describe import describe_device
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import SpeedRatio, withhold_ratio
from opsmith_lab.bench.flag_speeds import FlagSpeed, choose_best_flags
from opsmith_lab.bench.tuned_speeds import TunedProgram, TunedSpeed, TunedSpeeds, compose_row
from opsmith_lab.bench.tuned_table import list_means, write_markdown

FAST_MATH = FlagSpeed("-O3 -ffast-math", Interval(4.0, 3.9, 4.1))
EMPTY = TunedSpeed(
    "softmax", "large", {"M": 8}, TunedProgram("...", 8, 7, ("vectorise-all", "tile, rows 4")), FAST_MATH.ratio
)
ROW = compose_row(replace(EMPTY, flags=FAST_MATH), REPORT, TORCH)


def make_speeds(*rows: TunedSpeed) -> TunedSpeeds:
    return TunedSpeeds(describe_device(), rows)


def test_the_best_program_is_compared_with_plain_under_both_flags_and_with_torch() -> None:
    assert ROW.is_gain
    assert ROW.ratio == Interval(8.0, 7.9, 8.1)
    assert ROW.over_flags is not None
    assert ROW.over_flags.value == pytest.approx(8.0 / 4.0)
    assert ROW.over_eager is not None
    assert ROW.over_eager.value == pytest.approx(8.0 * 0.5)
    assert ROW.over_compile is not None
    assert ROW.over_compile.value == pytest.approx(8.0 * 0.25)


def test_without_a_better_program_the_plain_one_stands_in_every_column() -> None:
    row = compose_row(replace(EMPTY, program=None), None, TORCH)
    assert not row.is_gain
    assert row.ratio is None
    assert row.over_flags == Interval(1.0, 1.0, 1.0)
    assert row.over_eager == TORCH.figures["eager"].to_plain


def test_a_ratio_that_cannot_be_said_is_missing_in_every_column() -> None:
    lost = replace(REPORT, measurement=withhold_ratio(REPORT.measurement, "plain", "the clocks disagree"))
    row = compose_row(replace(EMPTY, flags=FAST_MATH), lost, TORCH)
    assert (row.ratio, row.over_flags, row.over_eager, row.over_compile) == (None, None, None, None)


@pytest.mark.parametrize("claim", [Claim.NO_DIFFERENCE, Claim.IN_PROCESS])
def test_what_is_not_claimed_as_faster_counts_as_1_in_the_mean(claim: Claim) -> None:
    ratio = SpeedRatio("plain", Interval(8.0, 7.9, 8.1), Interval(8.0, 0.9, 8.5), claim)
    unclaimed = compose_row(EMPTY, replace(REPORT, measurement=replace(REPORT.measurement, ratio=ratio)), TORCH)
    speeds = make_speeds(ROW, unclaimed)
    assert speeds.mean is not None
    assert speeds.mean.value == pytest.approx(8.0**0.5)
    assert speeds.large_gains == 1


def test_a_gain_counts_as_large_with_its_whole_interval_only() -> None:
    rows = [replace(ROW, ratio=Interval(1.6, low, 1.7)) for low in (1.4, 1.55)]
    assert make_speeds(*rows).large_gains == 1


def test_the_best_flags_are_those_that_are_shown_to_be_faster() -> None:
    slower, noise = FlagSpeed("-O2", Interval(0.9, 0.8, 0.95)), FlagSpeed("-O1", Interval(9.0, 0.9, 10.0))
    wrong = FlagSpeed("-Ofast", None, "the program is not right")
    assert choose_best_flags([slower, noise, wrong, FAST_MATH]) == FAST_MATH
    assert choose_best_flags([slower, noise, wrong]) is None


def test_the_page_says_how_it_was_made_what_was_changed_and_what_is_missing() -> None:
    lost = replace(REPORT, measurement=withhold_ratio(REPORT.measurement, "plain", "the clocks disagree"))
    page = write_markdown(make_speeds(ROW, compose_row(EMPTY, lost, TORCH)), {"command": "`opsmith bench optimise`"})
    assert "- command: `opsmith bench optimise`" in page
    assert "- softmax: vectorise-all; tile, rows 4" in page
    assert "| 7 of 8 |" in page
    assert "- softmax: the clocks disagree" in page
    assert "2 problems, 1 with a gain that is claimed" in list_means(make_speeds(ROW, TunedSpeed("x", "large")))[0]
