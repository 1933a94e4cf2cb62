"""The reward of speed: bounded, 0 within the noise, and never made of a figure that cannot be said."""

from __future__ import annotations

import pytest

from opsmith.bridges.rewards import score_speed
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.records import TIME


def report(ratio: Interval | None, sought: str = "", reason: str = "") -> SpeedReport:
    measured = SpeedRatio("plain", ratio) if ratio is not None else None
    place = ("program", "problem", "small", {"M": 2}, "device", "pairs/1", "-O3", MeasuringGrade.SCREEN, TIME)
    return SpeedReport(SpeedMeasurement(*place, Interval(1, 1, 1), measured, reason, sought), None)


@pytest.mark.parametrize(
    ("ratios", "bonus"),
    [
        ([Interval(1.0, 0.9, 1.1)], 0.0),
        ([Interval(1.5, 1.02, 2.0)], 0.0),  # the lower end lies within the noise
        ([Interval(2**0.5, 2**0.5, 2**0.5)], 0.5),
        ([Interval(4.0, 4.0, 4.0), Interval(1.0, 1.0, 1.0)], 1.0),  # the geometric mean is 2
        ([Interval(1e6, 9e5, 2e6)], 1.0),
        ([Interval(0.1, 0.1, 0.1)], 0.0),  # slower is no worse than right
    ],
)
def test_the_bonus_grows_with_the_lower_end_and_ends_at_twice_as_fast(ratios: list[Interval], bonus: float) -> None:
    assert score_speed([report(ratio) for ratio in ratios]).bonus == pytest.approx(bonus, abs=1e-9)


def test_a_figure_that_is_missing_at_one_size_leaves_no_bonus() -> None:
    reward = score_speed([report(Interval(3, 3, 3)), report(None, "plain", "the clocks contradict each other")])
    assert (reward.bonus, reward.ratio, reward.reason) == (0.0, None, "the clocks contradict each other")
    assert score_speed([]).bonus == 0
    assert "own program" in score_speed([report(None)]).reason
